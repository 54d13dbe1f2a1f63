package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials"
)

// tlsFlags prove who we are on TCP, where both sides show
// certificates.
type tlsFlags struct {
	ca, cert, key, serverName string
}

func (t *tlsFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&t.ca, "tls-ca", "", "PEM file of the authorities that sign servers")
	f.StringVar(&t.cert, "tls-cert", "", "PEM file of our certificate")
	f.StringVar(&t.key, "tls-key", "", "PEM file of our key")
	f.StringVar(&t.serverName, "tls-server-name", "", "name in the server's certificate, if it is not that of --address")
}

// check refuses a certificate without its key.
func (t *tlsFlags) check() error {
	if (t.cert == "") != (t.key == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	return nil
}

// credentials returns what a connection over TCP needs.
func (t *tlsFlags) credentials() (credentials.TransportCredentials, error) {
	if t.ca == "" || t.cert == "" {
		return nil, usagef("an address that is not a UNIX socket needs --tls-ca, --tls-cert and --tls-key")
	}
	pem, err := os.ReadFile(t.ca)
	if err != nil {
		return nil, usagef("--tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usagef("--tls-ca: no certificate in %s", t.ca)
	}
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, usageError{fmt.Errorf("--tls-cert, --tls-key: %w", err)}
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:   tls.VersionTLS13,
		RootCAs:      pool,
		Certificates: []tls.Certificate{pair},
		ServerName:   t.serverName,
	}), nil
}

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

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
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(config), nil
}

// config reads the files.
func (t *tlsFlags) config() (*tls.Config, error) {
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
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		RootCAs:      pool,
		Certificates: []tls.Certificate{pair},
		ServerName:   t.serverName,
		NextProtos:   []string{"h2"},
	}, nil
}

// refusedError reports that a server refuses our certificate.
type refusedError struct {
	address string
	reason  error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the server at %s refuses the certificate of --tls-cert: %v (its log says more: handshake failed)", e.address, e.reason)
}

func (e *refusedError) Unwrap() error { return fs.ErrPermission }

// probeTLS connects to find whether the server refuses our certificate. Its refusal follows the
// handshake, and is lost where the client has sent something meanwhile: the probe sends nothing.
func (s server) probeTLS(ctx context.Context) error {
	config, err := s.tls.config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // for --timeout 0
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil // the error of the call says as much
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	_, err = conn.Read(make([]byte, 1))
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" {
		return &refusedError{s.address, alert.Err}
	}
	return nil
}

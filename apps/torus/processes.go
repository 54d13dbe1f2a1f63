package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// places are the nodes of the processes.
var places = []string{"0.0.0", "1.0.0", "0.1.0", "1.1.0"}

// process is a node in a process of its own.
type process struct {
	place string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
}

// fourProcesses is a torus of four processes over loopback sockets.
func fourProcesses(ctx context.Context) error {
	fmt.Println("== 4 nfsim processes over loopback sockets and TLS: transfers of 1 MiB from a client of 0.0.0 to 1.1.0 and back, compared ==")
	dir, err := os.MkdirTemp("", "torus")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	nfsim := filepath.Join(dir, "nfsim")
	if err := subprocess.Program(ctx, nfsim, "./cmd/nfsim"); err != nil {
		return err
	}
	file, err := describe(dir)
	if err != nil {
		return err
	}
	var all []*process
	defer func() {
		for _, p := range all {
			p.end()
		}
	}()
	socket := filepath.Join(dir, "socket") // of node 0.0.0
	for i, place := range places {
		args := []string{"--node", place, "--fabric", file, "--console",
			"--certificate", filepath.Join(dir, place+".pem"), "--key", filepath.Join(dir, place+".key")}
		if i == 0 {
			args = append(args, "--shm", socket)
		}
		p, err := start(ctx, nfsim, place, args...)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	for _, p := range all {
		if err := p.untilMended(ctx); err != nil {
			return err
		}
	}
	dev, err := nfcomms.Open(ctx, "shm:"+socket+"?node=1.1.0")
	if err != nil {
		return err
	}
	return errors.Join(play(ctx, dev, all), dev.Close())
}

// describe writes certificates and the fabric file.
func describe(dir string) (string, error) {
	text := "torus: 2x2x1\nnodes:\n"
	for _, place := range places {
		print, err := certificate(filepath.Join(dir, place))
		if err != nil {
			return "", err
		}
		address, err := freeAddress()
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("  - {node: %s, listen: '%s', certificate: %s}\n", place, address, print)
	}
	file := filepath.Join(dir, "fabric.yaml")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// certificate makes one that signs itself, and returns its SHA-256.
func certificate(path string) (print string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: filepath.Base(path)}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(cert)), errors.Join(
		os.WriteFile(path+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(path+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// freeAddress is one of loopback that nobody had a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func start(ctx context.Context, nfsim, place string, args ...string) (*process, error) {
	cmd := subprocess.Command(ctx, nfsim, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log := &strings.Builder{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{place, cmd, in, bufio.NewScanner(out)}
	for p.out.Scan() {
		if strings.HasPrefix(p.out.Text(), "node ") {
			return p, nil
		}
	}
	p.end()
	return nil, fmt.Errorf("nfsim %s: %s", strings.Join(args, " "), log)
}

// end closes its console, with which it ends.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// ask gives a command and returns the answer.
func (p *process) ask(command string) (string, error) {
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		return "", err
	}
	var answer strings.Builder
	for p.out.Scan() && p.out.Text() != "" {
		answer.WriteString(p.out.Text() + "\n")
	}
	if text := answer.String(); strings.HasPrefix(text, "error: ") {
		return "", fmt.Errorf("%s: %s", command, strings.TrimSpace(text))
	}
	return answer.String(), p.out.Err()
}

// untilMended waits until a node knows all others, and no link that is broken: those that bear
// a load may be sick.
func (p *process) untilMended(ctx context.Context) error {
	return until(ctx, "nothing is broken", func() (bool, error) {
		text, err := p.ask("map")
		return !strings.Contains(text, ": broken") && strings.Count(text, "?") == 1, err // which the legend has
	})
}

// show prints the map of a node.
func (p *process) show() error {
	text, err := p.ask("map")
	fmt.Print(text)
	return err
}

// play moves bulk data from one node to another and back, cuts a link meanwhile, and mends it.
func play(ctx context.Context, dev *nfcomms.Device, all []*process) error {
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	if err != nil {
		return err
	}
	defer ch.Close()
	l := newLoad(ctx, ch)
	defer l.stop()
	near := all[0]
	if err := stageOf(l, near, "before"); err != nil {
		return err
	}
	link, err := near.ask("route 1.1.0")
	if err != nil {
		return err
	}
	link = strings.Trim(link, "*\n")
	if err := cutOne(ctx, near, link); err != nil {
		return err
	}
	if err := stageOf(l, near, "with the link cut"); err != nil {
		return err
	}
	if _, err := near.ask("mend " + link); err != nil {
		return err
	}
	if err := near.untilMended(ctx); err != nil {
		return err
	}
	if err := stageOf(l, near, "mended"); err != nil {
		return err
	}
	return errors.Join(l.stop(), forwarded(all[1:3]))
}

// stageOf lets the load run for a stage, and prints the map as a node knows it then.
func stageOf(l *load, p *process, title string) error {
	if _, err := l.measure(title); err != nil {
		return err
	}
	return p.show()
}

// cutOne cuts a link of node 0.0.0 on the way to 1.1.0, and waits for the way around it.
func cutOne(ctx context.Context, p *process, link string) error {
	begin := time.Now()
	if _, err := p.ask("cut " + link); err != nil {
		return err
	}
	err := until(ctx, "the way leads around the cut", func() (bool, error) {
		way, err := p.ask("route 1.1.0")
		return strings.Trim(way, "*\n") != link && !strings.HasPrefix(way, "none"), err
	})
	if err != nil {
		return err
	}
	fmt.Printf("\nlink %s of 0.0.0 cut under load: the way led around it after %.1f ms\n", link, float64(time.Since(begin).Microseconds())/1e3)
	return nil
}

// forwarded prints what the nodes between passed on, and fails for one that passed on nothing.
func forwarded(all []*process) error {
	for _, p := range all {
		answer, err := p.ask("count")
		if err != nil {
			return err
		}
		var c struct{ Forwarded uint64 }
		if err := json.Unmarshal([]byte(answer), &c); err != nil {
			return err
		}
		fmt.Printf("%s passed on %d packets\n", p.place, c.Forwarded)
		if c.Forwarded == 0 {
			return fmt.Errorf("node %s passed on no packet", p.place)
		}
	}
	return nil
}

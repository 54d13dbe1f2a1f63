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
)

// Packets that node 0.0.0 sends to 1.1.0.
const (
	packets     = 30_000
	packetBytes = 4096
)

// places are the nodes of the processes.
var places = []string{"0.0.0", "1.0.0", "0.1.0", "1.1.0"}

// process is a node in a process of its own.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// counts is what a node says it counted.
type counts struct {
	Sent, Came, Bytes, Changed, Doubled, Refused uint64
}

// fourProcesses is a torus of four processes over loopback sockets.
func fourProcesses(ctx context.Context) error {
	fmt.Printf("== 4 nfsim processes over loopback sockets and TLS: %d packets of %d bytes from 0.0.0 to 1.1.0 ==\n", packets, packetBytes)
	fmt.Println("(packets of the nodes themselves, which check every word; no channels)")
	dir, err := os.MkdirTemp("", "fabricdemo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	nfsim := filepath.Join(dir, "nfsim")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", nfsim, "./cmd/nfsim").CombinedOutput(); err != nil {
		return fmt.Errorf("build nfsim: %w\n%s", err, out)
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
	for _, place := range places {
		p, err := start(ctx, nfsim, "--node", place, "--fabric", file, "--console",
			"--certificate", filepath.Join(dir, place+".pem"), "--key", filepath.Join(dir, place+".key"))
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	return play(ctx, all[0], all[3])
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

func start(ctx context.Context, nfsim string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, nfsim, args...)
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
	p := &process{cmd, in, bufio.NewScanner(out)}
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

// asks asks until the answer holds a text.
func (p *process) asks(ctx context.Context, command, holds string) error {
	return until(ctx, command+" says "+holds, func() (bool, error) {
		answer, err := p.ask(command)
		return strings.Contains(answer, holds), err
	})
}

func (p *process) counts() (c counts, err error) {
	answer, err := p.ask("count")
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal([]byte(answer), &c)
}

// show prints the map of a node.
func (p *process) show(title string) error {
	text, err := p.ask("map")
	fmt.Printf("\n%s:\n%s", title, text)
	return err
}

// play sends from one node to another, cuts a link meanwhile, and mends it.
func play(ctx context.Context, from, to *process) error {
	for _, p := range []*process{from, to} {
		if err := p.asks(ctx, "map", "o -- o --\n      |    |\n   1  o -- o --\n"); err != nil {
			return err
		}
	}
	if err := from.show("before, as 0.0.0 knows it"); err != nil {
		return err
	}
	way, err := from.ask("route 1.1.0")
	if err != nil {
		return err
	}
	link := strings.Trim(way, "*\n")
	begin := time.Now()
	if _, err := from.ask(fmt.Sprintf("send 1.1.0 %d %d", packets, packetBytes)); err != nil {
		return err
	}
	if err := cutOne(ctx, from, to, link); err != nil {
		return err
	}
	if err := from.asks(ctx, "done", "true"); err != nil {
		return err
	}
	if err := report(ctx, from, to, begin); err != nil {
		return err
	}
	if _, err := from.ask("mend " + link); err != nil {
		return err
	}
	if err := to.asks(ctx, "map", "o -- o --\n      |    |\n   1  o -- o --\n"); err != nil {
		return err
	}
	return to.show("mended, as 1.1.0 knows it")
}

// cutOne cuts a link once packets are under way.
func cutOne(ctx context.Context, from, to *process, link string) error {
	err := until(ctx, "packets come", func() (bool, error) {
		c, err := to.counts()
		return c.Came > packets/10, err
	})
	if err != nil {
		return err
	}
	begin := time.Now()
	if _, err := from.ask("cut " + link); err != nil {
		return err
	}
	err = until(ctx, "the way leads around the cut", func() (bool, error) {
		way, err := from.ask("route 1.1.0")
		return !strings.HasPrefix(way, link) && !strings.HasPrefix(way, "none"), err
	})
	if err != nil {
		return err
	}
	fmt.Printf("\nlink %s of 0.0.0 cut under load: the way led around it after %.1f ms\n", link, float64(time.Since(begin).Microseconds())/1e3)
	return from.show("with the link cut, as 0.0.0 knows it")
}

// report waits for what is under way and says what came of it.
func report(ctx context.Context, from, to *process, begin time.Time) error {
	var c counts
	last, since := uint64(0), time.Now()
	err := until(ctx, "all packets came", func() (done bool, err error) {
		if c, err = to.counts(); err != nil {
			return false, err
		}
		if c.Came != last {
			last, since = c.Came, time.Now()
		}
		return c.Came == packets || time.Since(since) > time.Second, nil
	})
	if err != nil {
		return err
	}
	sent, err := from.counts()
	if err != nil {
		return err
	}
	fmt.Printf("\n%d packets sent, %d came, %d lost with the link that was cut, %d changed, %d doubled; %.0f MB/s\n",
		sent.Sent, c.Came, sent.Sent-c.Came, c.Changed, c.Doubled, float64(c.Bytes)/since.Sub(begin).Seconds()/1e6)
	if c.Changed+c.Doubled+sent.Refused > 0 || sent.Sent != packets {
		return fmt.Errorf("%d packets sent, %d refused, %d changed, %d doubled", sent.Sent, sent.Refused, c.Changed, c.Doubled)
	}
	return nil
}

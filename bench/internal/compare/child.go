package compare

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// The other process of the peers but memcpy and Go channels is this binary again,
// under a hidden command. It lives until its standard input ends.
const (
	peerCommand = "peer-serve"
	peerReady   = "ready"
	wireSocket  = "wire.sock"
	grpcSocket  = "grpc.sock"
)

func newPeerServe() *cobra.Command {
	var pipes bool
	cmd := &cobra.Command{
		Use:    peerCommand + " DIR",
		Short:  "Serve the peers of another nfbench from sockets in DIR",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return servePeers(args[0], pipes, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&pipes, "pipes", false, "serve descriptors 3 and 4 as well")
	return cmd
}

// servePeers serves all sockets, and the pipes if there are any, until in ends.
func servePeers(dir string, pipes bool, in io.Reader, out io.Writer) error {
	w, err := net.Listen("unix", filepath.Join(dir, wireSocket))
	if err != nil {
		return err
	}
	defer w.Close()
	g, err := net.Listen("unix", filepath.Join(dir, grpcSocket))
	if err != nil {
		return err
	}
	m, err := listenMangos(dir)
	if err != nil {
		return err
	}
	server := newGRPCServer()
	ended := make(chan error, 3) // one per server, so that none blocks
	go func() { ended <- serveWire(w) }()
	go func() { ended <- server.Serve(g) }()
	go func() { ended <- m.serve() }()
	if pipes {
		conn, err := inheritedPipes()
		if err != nil {
			return err
		}
		go func() { _ = serveConn(conn) }() // its end is the other process's to report
	}
	if _, err := fmt.Fprintln(out, peerReady); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	server.Stop()
	return errors.Join(err, w.Close(), m.Close(), <-ended, <-ended, <-ended)
}

// Child is the other process, seen from this one.
type Child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	dir   string
	wire  *wire
	pipe  *wire
	grpc  *grpc.ClientConn
}

// StartChild starts the other process and connects to it.
func StartChild(ctx context.Context) (c *Child, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "nfbench")
	if err != nil {
		return nil, err
	}
	c = &Child{dir: dir, cmd: subprocess.Command(ctx, self, peerCommand, "--pipes", dir)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start peer process: %w", err), c.Close())
		}
	}()
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return c, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return c, err
	}
	theirs, err := c.openPipes()
	if err != nil {
		return c, err
	}
	c.cmd.ExtraFiles = theirs
	err = c.cmd.Start()
	_, _ = theirs[0].Close(), theirs[1].Close() // the child has its own
	if err != nil {
		return c, err
	}
	c.stdin = stdin
	if _, err = bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return c, err
	}
	conn, err := net.Dial("unix", filepath.Join(dir, wireSocket))
	if err != nil {
		return c, err
	}
	c.wire = &wire{conn: conn}
	c.grpc, err = dialGRPC(filepath.Join(dir, grpcSocket))
	return c, err
}

// CPU returns the CPU time of both processes.
func (c *Child) CPU() (time.Duration, error) {
	if err := c.wire.request(wireCPU, 0, 0); err != nil {
		return 0, err
	}
	var word [8]byte
	if _, err := io.ReadFull(c.wire.conn, word[:]); err != nil {
		return 0, err
	}
	return cli.CPUTime() + time.Duration(binary.LittleEndian.Uint64(word[:])), nil
}

// Close ends the other process and removes its sockets.
func (c *Child) Close() error {
	var errs []error
	if c.grpc != nil {
		errs = append(errs, c.grpc.Close())
	}
	for _, w := range []*wire{c.wire, c.pipe} {
		if w != nil {
			errs = append(errs, w.conn.Close())
		}
	}
	if c.stdin != nil {
		errs = append(errs, c.stdin.Close(), c.cmd.Wait())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// Add adds the commands of other processes, which are hidden.
func Add(root *cobra.Command, _ *cli.Flags) { root.AddCommand(newPeerServe(), newGiftServe()) }

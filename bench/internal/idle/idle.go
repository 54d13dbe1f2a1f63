//go:build linux

package idle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/load"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// options are the flags of the command.
type options struct {
	clients  []int
	duration time.Duration
}

// An idle client is this binary again, under a hidden command: it opens a device, prints
// a line, and does nothing until its standard input ends.
const idleClientCommand = "idle-client"

// idleMost is how many clients a shared device has room for.
const idleMost = 64

// Add adds the command and the one of client processes, which is hidden.
func Add(root *cobra.Command, c *cli.Flags) {
	root.AddCommand(newIdle(c), &cobra.Command{
		Use: idleClientCommand + " ADDRESS", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dev, err := nfcomms.Open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "open")
			_, err = io.Copy(io.Discard, cmd.InOrStdin())
			return errors.Join(err, dev.Close())
		},
	})
}

func newIdle(c *cli.Flags) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "idle",
		Short: "What clients of a shared device cost that do nothing",
		Long: `Measure the processor time of a device that processes share, and of clients that have
opened it and do nothing, each a process of its own: as a part of one core, from the
scheduler's account of all their threads. --address is that of a device that runs, with
room for the clients: nfsim --shm SOCKET --hosts 64.`,
		Example: `  nfbench idle --address shm:/tmp/0.sock --clients 0,16,64`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			r, err := o.measure(cmd.Context(), c.Address, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return c.Print(cmd.OutOrStdout(), r)
		},
	}
	cmd.Flags().IntSliceVar(&o.clients, "clients", []int{1, 16, idleMost}, "numbers of clients")
	cmd.Flags().DurationVar(&o.duration, "duration", 10*time.Second, "time of each number")
	return cmd
}

func (o *options) check(c *cli.Flags) error {
	switch {
	case !strings.HasPrefix(c.Address, "shm:"):
		return cli.Usagef("--address %q is no device that processes share, such as shm:/run/nfsim/0.sock", c.Address)
	case len(o.clients) == 0 || slices.Min(o.clients) < 1 || slices.Max(o.clients) > idleMost:
		return cli.Usagef("--clients %v: want numbers from 1 to %d", o.clients, idleMost)
	case o.duration <= 0:
		return cli.Usagef("--duration %v is not a positive time", o.duration)
	}
	return c.Check()
}

// Report is the JSON of the command.
type Report struct {
	cli.Header
	Rows  []Row      `json:"rows"`
	Goals []cli.Goal `json:"goals"`
}

// Row is one number of clients, in percent of a core.
type Row struct {
	Clients int     `json:"clients"`
	Seconds float64 `json:"seconds"`
	// DevicePercent is of the device's process, ClientsPercent of all clients'.
	DevicePercent  float64 `json:"device_percent"`
	ClientsPercent float64 `json:"clients_percent"`
}

// measure does all numbers, each with clients of its own.
func (o *options) measure(ctx context.Context, address string, errw io.Writer) (*Report, error) {
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	r := &Report{Header: cli.NewHeader("idle", dev)}
	path, _, _ := strings.Cut(strings.TrimPrefix(dev.Info().Address, "shm:"), "?")
	if err := dev.Close(); err != nil {
		return nil, err
	}
	device, err := serverOf(ctx, path)
	if err != nil {
		return nil, err
	}
	bar := cli.NewProgress(errw, len(o.clients), "idle")
	defer bar.Done()
	for _, n := range o.clients {
		bar.Step(fmt.Sprintf("%d clients", n))
		row, err := o.count(ctx, address, device, n)
		if err != nil {
			return nil, fmt.Errorf("%d clients: %w", n, err)
		}
		r.Rows = append(r.Rows, row)
	}
	r.Goals = r.goals()
	return r, nil
}

// serverOf returns the process that serves a socket.
func serverOf(ctx context.Context, path string) (int, error) {
	c, err := fdpass.Dial(ctx, "unixpacket", path)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	peer, err := fdpass.PeerOf(c)
	if err == nil && peer.PID <= 1 {
		err = fmt.Errorf("process %d made %s: the device's own is not known", peer.PID, path)
	}
	return int(peer.PID), err
}

// count measures one number.
func (o *options) count(ctx context.Context, address string, device, n int) (row Row, err error) {
	clients, err := startIdle(ctx, address, n)
	defer func() { err = errors.Join(err, clients.Stop()) }()
	if err != nil {
		return row, err
	}
	var pids []int
	for _, c := range clients {
		pids = append(pids, c.Cmd.Process.Pid)
	}
	soon(ctx, o.duration/2) // what opening left behind ends
	before, begun := ranTime(device), time.Now()
	clientsBefore := ranTime(pids...)
	soon(ctx, o.duration)
	wall := time.Since(begun)
	return rowOf(n, wall, ranTime(device)-before, ranTime(pids...)-clientsBefore), ctx.Err()
}

// rowOf is the row of so many clients, of the time that passed and the times that processes ran.
func rowOf(n int, wall, device, clients time.Duration) Row {
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(wall) }
	return Row{Clients: n, Seconds: wall.Seconds(), DevicePercent: percent(device), ClientsPercent: percent(clients)}
}

// soon passes time, less if the user interrupts.
func soon(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// startIdle starts n clients, and waits until each has opened the device.
func startIdle(ctx context.Context, address string, n int) (all load.Processes, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range n {
		cmd := subprocess.Command(ctx, self, idleClientCommand, address)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return all, err
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return all, err
		}
		all = append(all, load.Process{Cmd: cmd, Stdin: stdin})
		if !bufio.NewScanner(out).Scan() {
			return all, errors.New("a client does not open the device")
		}
	}
	return all, nil
}

// ranTime is the time that all threads of processes ran, by the scheduler's account.
func ranTime(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is sound
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				continue // the thread ended
			}
			ran, _, _ := strings.Cut(string(text), " ")
			ns, _ := strconv.ParseInt(ran, 10, 64) // 0 where the kernel keeps no account
			sum += time.Duration(ns)
		}
	}
	return sum
}

// idleGoal is what 64 clients that do nothing may cost together with their device.
const idleGoal = 0.2

func (r *Report) goals() (goals []cli.Goal) {
	for _, row := range r.Rows {
		if row.Clients == idleMost {
			goals = append(goals, cli.Goal{ID: "T3", What: "64 idle clients of a shared device, percent of a core, all of them and the device",
				Value: row.DevicePercent + row.ClientsPercent, Target: idleGoal, AtMost: true}.Decide(""))
		}
	}
	return goals
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	r.Header.Table(w)
	t := texttable.Numbers("idle clients", "seconds", "device", "clients, all", "a client")
	percent := func(v float64) string { return fmt.Sprintf("%.4f %%", v) }
	for _, row := range r.Rows {
		t.Add(strconv.Itoa(row.Clients), fmt.Sprintf("%.1f", row.Seconds), percent(row.DevicePercent), percent(row.ClientsPercent), percent(row.ClientsPercent/float64(row.Clients)))
	}
	t.Write(w)
	fmt.Fprintln(w)
	cli.WriteGoals(w, r.Goals)
}

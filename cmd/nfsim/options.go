package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/pci"
)

// options is the command line.
type options struct {
	socket  string // of vfio-user
	shm     string // socket for processes that share the device
	shmMode string
	hosts   int
	// Of clients of --shm.
	userHosts int
	user      string
	noFilter  bool
	vectors   int
	noMap     bool
	once      bool
	report    string
	logs      string
	debug     bool
	script    string
	seed      uint64
	pci       version // in place of the device's own
	abi       version
	shape     map[string]*string // options of the device, as in an address

	// Of a node of a fabric.
	node, torus, fabric, listen string
	links, peers                []string
	certificate, key            string
	service, authority          string
	console                     bool
}

// shapeFlags are the options of a "sim:" address, and the size of BAR 2.
var shapeFlags = []struct{ name, help string }{
	{"bar2", "size of the mailbox BAR, a power of two (64MiB)"},
	{"shm-memory", "how much of its memory a client of --shm may map (16GiB)"},
	{"user-memory", "how much all clients of --shm of one user may map together, as for --user-hosts (64GiB)"},
	{"managers", "mailboxes (8)"},
	{"islands", "threads that run managers and processes (1)"},
	{"microengines", "per island (8)"},
	{"contexts", "processes per microengine (8)"},
	{"channels", "target ids are below this (65536)"},
	{"slots", "per mailbox ring, a power of two (1024)"},
	{"window", "gather lists in flight per transfer, a power of two (512)"},
	{"runs", "entries of gather lists may be runs of pages, 0: single pages only (1)"},
	{"eager", "page entries of a transfer that travels as one slot; 0: none does (4)"},
	{"host-rings", "a host of --vfio-user may have rings in memory of its own; 0: they are in the mailbox BAR (1)"},
	{"engines", "DMA threads beside the islands (0)"},
	{"lone", "1: programs that may keep an island to themselves are there, as lone.spin (0)"},
	{"busy", "one DMA piece of so many is refused for now; 0: none (0)"},
	{"mhz", "clock by which each nfc_at takes the cycles of an access to its type of memory; 0: none (0)"},
	{"cls", "cluster local scratch (64KiB)"},
	{"ctm", "cluster target memory (256KiB)"},
	{"imem", "internal memory (4MiB)"},
	{"emem", "external memory (1GiB)"},
	{"buffer", "device memory that a process may have for each of its targets (as there is room)"},
	{"stack", "of a device process (64KiB)"},
	{"beat", "heartbeat interval (100ms; 200ms with --shm)"},
	{"target-timeout", "how long an offer waits for its target; 0: for ever (0)"},
	{"spin", "how long an idle island spins before it sleeps (25us, 0 on one processor)"},
}

// define adds the flags to the command.
func (o *options) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.socket, "vfio-user", "", "path of the socket to listen on, for QEMU and its like")
	f.StringVar(&o.shm, "shm", "", "path of the socket to listen on, for processes that share the device as shm:PATH")
	f.StringVar(&o.shmMode, "shm-mode", "0660", "permissions of that socket")
	f.IntVar(&o.hosts, "hosts", 16, "clients of --shm at a time, each with a device of this shape")
	f.IntVar(&o.userHosts, "user-hosts", 0, "of these, clients of one user that is neither root nor the device's; 0: half of them")
	f.StringVar(&o.user, "user", "", "run the device of --shm as this user, whose the socket becomes; needs root")
	f.BoolVar(&o.noFilter, "no-filter", false, "let images of --shm make any system call, not only those that the device needs")
	f.IntVar(&o.vectors, "vectors", pci.VectorsMax, fmt.Sprintf("MSI-X vectors, 1..%d", pci.VectorsMax))
	f.BoolVar(&o.noMap, "no-mmap", false, "do not offer the mailbox BAR for mapping: every access is a message")
	f.BoolVar(&o.once, "exit-when-disconnected", false, "exit when the first client has ended")
	f.StringVar(&o.report, "report", "", "write what happened to this file, as JSON, when a client has ended")
	f.StringVar(&o.logs, "log-format", "text", "log format: text or json")
	f.BoolVar(&o.debug, "log-debug", false, "log debug messages, too")
	f.StringVar(&o.script, "script", "", "break the rules as this plan says: KIND[@FIRST][+EVERY][:WHERE],… (see below)")
	f.Uint64Var(&o.seed, "seed", 1, "what chance decides in a script comes from this")
	f.Var(&o.pci, "pci-version", "version that the registers claim, to see a driver refuse it (1.0)")
	f.Var(&o.abi, "abi-version", "version that the mailboxes claim, likewise (2.0)")
	o.shape = make(map[string]*string)
	for _, s := range shapeFlags {
		o.shape[s.name] = f.String(s.name, "", "device: "+s.help)
	}
	o.defineNode(cmd)
	formats := cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)
	// The flag is there: it was defined above.
	_ = cmd.RegisterFlagCompletionFunc("log-format", formats)
}

// given is how many kinds of service the command line asks for.
func (o *options) given() (n int) {
	for _, kind := range []string{o.socket, o.node} {
		if kind != "" {
			n++
		}
	}
	if o.shm != "" && o.node == "" { // a node may have clients, too
		n++
	}
	return n
}

// streams are the standard ones of a process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// defineNode adds the flags of a node of a fabric.
func (o *options) defineNode(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.node, "node", "", "be this node of a fabric: 1,0,0 or 1.0.0, or a name of the file")
	f.StringVar(&o.torus, "torus", "", "node: how many nodes there are in x, y and z, as 2x2x1")
	f.StringVar(&o.listen, "listen", "", "node: HOST:PORT where neighbours reach it; udp://HOST:PORT: over UDP as well")
	f.StringArrayVar(&o.links, "link", nil, "node: reach the neighbour of a link, x+=HOST:PORT or x+=udp://HOST:PORT; for each that does not connect by itself")
	f.StringArrayVar(&o.peers, "peer", nil, "node: certificate of a neighbour, 0.0.0=SHA256 in hex; for each of them")
	f.StringVar(&o.fabric, "fabric", "", "node: file that describes the whole (docs/fabric.md), in place of those")
	f.StringVar(&o.service, "service", "", "node: find all nodes by these DNS records, _PORT._tcp.DOMAIN; --node is NAME-NUMBER then")
	f.StringVar(&o.authority, "authority", "", "node: file of the authority for the hosts of --service, PEM; read anew at each connection, as the next two are")
	f.StringVar(&o.certificate, "certificate", "", "node: file of its certificate, PEM")
	f.StringVar(&o.key, "key", "", "node: file of the key of that")
	f.BoolVar(&o.console, "console", false, "node: obey commands from the standard input")
}

// version is a flag: MAJOR.MINOR, as a register has it.
type version uint32

func (v *version) Set(text string) error {
	major, minor, _ := strings.Cut(text, ".")
	high, err1 := strconv.ParseUint(major, 10, 16)
	low, err2 := strconv.ParseUint(minor, 10, 16)
	if err1 != nil || err2 != nil || high == 0 {
		return fmt.Errorf("%q: want MAJOR.MINOR, from 1.0", text)
	}
	*v = version(high<<16 | low)
	return nil
}

func (v *version) String() string {
	if *v == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", *v>>16, *v&0xffff)
}

func (v *version) Type() string { return "version" }

// address returns the device's options in the form the bridge reads them.
func (o *options) address() bridge.Address {
	a := bridge.Address{Scheme: "nfsim", Options: url.Values{}}
	for name, v := range o.shape {
		if *v != "" {
			a.Options.Set(name, *v)
		}
	}
	return a
}

// logger makes the log, whose lines are written to w.
func (o *options) logger(w io.Writer) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{}
	if o.debug {
		opts.Level = slog.LevelDebug
	}
	switch o.logs {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, usagef("--log-format %q is neither text nor json", o.logs)
}

// consoleHelp lists the commands of a node's console.
const consoleHelp = `  map                    draw what the node knows of all
  route NODE             the link by which it sends to another, "none" without a way
  send NODE COUNT BYTES  packets that the other end checks, each of at most 4096 bytes
  done                   whether all of them have left
  count                  packets and bytes sent and received, as JSON
  cut LINK, mend LINK    take a link out of use, or back
  test LINK WORDS        test a link for ten seconds at most
`

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/cmd/internal/manual"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/hostile"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitDied   = 3 // the script said so
)

// usageError is a fault of the command line: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "ask the system"
	root.SetOut(stdout)
	root.SetErr(stderr)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "nfsim: %v\n", err)
	var usage usageError
	if !started || errors.As(err, &usage) || errors.Is(err, bridge.ErrInvalid) {
		return exitUsage
	}
	return exitFailed
}

// rootLong is what nfsim --help says first.
var rootLong = `Run an NFComms device in a process of its own: a PCI device that a virtual
machine monitor attaches through a vfio-user socket, for example QEMU 10.1 or later.
The device is described in docs/device-spec.md. Or, with --shm, a device that other
processes share without a kernel module: they open it as shm:SOCKET (docs/shm.md).

With --node it is a node of a fabric (docs/fabric.md) whose neighbours are other
processes, here or on other machines. Links are TLS 1.3 with certificates of both
sides, known one by one. Programs at other nodes' devices, and clients of --shm, which
open them as shm:SOCKET?node=1.0.0, have channels to its device. With --console it obeys commands from the standard input,
one a line, and ends with it; an empty line ends each answer:

` + consoleHelp + `
With --script it is a device that speaks the protocol and runs the programs of the
conformance suite, and breaks the rules as the plan says. A plan is a list
KIND[@FIRST][+EVERY][:WHERE],… : strike at the FIRST event of the kind (1), and with
EVERY at each EVERY-th after it. WHERE narrows what is counted: a type of message
(direct begin ack done withdrawn aborted close error ready; for lose direct begin
list), control, or dma.
Kinds:

` + hostile.Kinds() + `
Exit codes: 0 ended as asked, 1 failed, 2 bad input, 3 died as the script said.`

func newRoot() *cobra.Command {
	o := &options{}
	var page bool
	root := &cobra.Command{
		Use:   "nfsim --vfio-user SOCKET | --shm SOCKET | --node NODE",
		Short: "Run an NFComms device in a process of its own, for virtual machines or other processes",
		Long:  rootLong,
		Example: `  nfsim --vfio-user /tmp/nfsim.sock
  nfsim --vfio-user /tmp/nfsim.sock --vectors 1 --no-mmap --islands 2
  nfsim --vfio-user /tmp/nfsim.sock --exit-when-disconnected --report report.json
  nfsim --vfio-user /tmp/nfsim.sock --script count@3 --seed 7
  nfsim --node 1,0,0 --torus 2x2x1 --link x+=10.0.0.1:7000 --peer 0.0.0=5e88… --certificate node.pem --key node.key
  nfsim --node alpha --fabric fabric.yaml --certificate alpha.pem --key alpha.key --shm /run/nfsim/0.sock
  nfsim --shm /run/nfsim/0.sock --hosts 32 --user nobody`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch given := o.given(); {
			case page:
				return printManual(cmd)
			case given == 0:
				return usagef("give the path of the socket to listen on with --vfio-user or --shm, or a node of a fabric with --node")
			case given > 1:
				return usagef("give one of --vfio-user, --shm and --node; a node may have --shm, too")
			case o.node != "":
				return runNode(cmd.Context(), o, streams{cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()})
			case o.shm != "":
				return share(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return serve(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.define(root)
	root.Flags().BoolVar(&page, "manual", false, "print the manual page, and exit")
	_ = root.Flags().MarkHidden("manual") // for packagers; it is there: it was defined above
	return root
}

func printManual(cmd *cobra.Command) error {
	date, err := manual.Date(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	cmd.DisableAutoGenTag = true
	text, err := manual.Page(cmd, "8", date)
	if err == nil {
		_, err = cmd.OutOrStdout().Write(text)
	}
	return err
}

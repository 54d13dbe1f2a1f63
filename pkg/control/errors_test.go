package control_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/access"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// sentinels are those of package nfcomms and of this one, by name.
var sentinels = map[string]error{
	"nfcomms.ErrClosed":        nfcomms.ErrClosed,
	"nfcomms.ErrTargetTimeout": nfcomms.ErrTargetTimeout,
	"nfcomms.ErrSizeMismatch":  nfcomms.ErrSizeMismatch,
	"nfcomms.ErrKindMismatch":  nfcomms.ErrKindMismatch,
	"nfcomms.ErrTooLarge":      nfcomms.ErrTooLarge,
	"nfcomms.ErrRange":         nfcomms.ErrRange,
	"nfcomms.ErrProtocol":      nfcomms.ErrProtocol,
	"nfcomms.ErrDMA":           nfcomms.ErrDMA,
	"nfcomms.ErrAborted":       nfcomms.ErrAborted,
	"nfcomms.ErrWithdrawn":     nfcomms.ErrWithdrawn,
	"nfcomms.ErrUnanswered":    nfcomms.ErrUnanswered,
	"nfcomms.ErrNotSubscribed": nfcomms.ErrNotSubscribed,
	"nfcomms.ErrBusy":          nfcomms.ErrBusy,
	"nfcomms.ErrNoProgram":     nfcomms.ErrNoProgram,
	"nfcomms.ErrABI":           nfcomms.ErrABI,
	"nfcomms.ErrNoMemory":      nfcomms.ErrNoMemory,
	"nfcomms.ErrInvalid":       nfcomms.ErrInvalid,
	"nfcomms.ErrNotSupported":  nfcomms.ErrNotSupported,
	"nfcomms.ErrStopped":       nfcomms.ErrStopped,
	"nfcomms.ErrDeviceLost":    nfcomms.ErrDeviceLost,
	"nfcomms.ErrFault":         nfcomms.ErrFault,
	"nfcomms.ErrScheme":        nfcomms.ErrScheme,
	"nfcomms.ErrOption":        nfcomms.ErrOption,
	"nfcomms.ErrSize":          nfcomms.ErrSize,
	"nfcomms.ErrPointers":      nfcomms.ErrPointers,
	"nfcomms.ErrCorrupt":       nfcomms.ErrCorrupt,
	"nfcomms.ErrMoved":         nfcomms.ErrMoved,
	"nfcomms.ErrStalled":       nfcomms.ErrStalled,
	"control.ErrNoDevice":      control.ErrNoDevice,
	"control.ErrNoProcess":     control.ErrNoProcess,
	"control.ErrNotOpen":       control.ErrNotOpen,
	"nfcomms.ErrLinkDown":      nfcomms.ErrLinkDown,
	"control.ErrNoFabric":      control.ErrNoFabric,
	"control.ErrDraining":      control.ErrDraining,
	"control.ErrNotOwned":      control.ErrNotOwned,
	"control.ErrPageToken":     control.ErrPageToken,
	"control.ErrResumeToken":   control.ErrResumeToken,
	"control.ErrResumeExpired": control.ErrResumeExpired,
	"control.ErrSlowWatcher":   control.ErrSlowWatcher,
	"control.ErrShutdown":      control.ErrShutdown,
	"control.ErrUnavailable":   control.ErrUnavailable,
}

// standards are the errors of package os that survive the wire beside them.
var standards = map[string]error{
	"fs.ErrPermission": fs.ErrPermission,
	"fs.ErrNotExist":   fs.ErrNotExist,
}

// named finds an error by its name.
func named(name string) error {
	if err := standards[name]; err != nil {
		return err
	}
	return sentinels[name]
}

// declared lists the variables Err… of a file.
func declared(t *testing.T, pkg, file string) []string {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	var names []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			for _, n := range s.(*ast.ValueSpec).Names {
				if strings.HasPrefix(n.Name, "Err") {
					names = append(names, pkg+"."+n.Name)
				}
			}
		}
	}
	return names
}

// TestErrorsSurviveTheWire: whatever a device returns is what a remote client
// gets: errors.Is holds for the same sentinels, and for no other.
func TestErrorsSurviveTheWire(t *testing.T) {
	names := append(declared(t, "nfcomms", "../nfcomms/errors.go"), declared(t, "control", "errors.go")...)
	require.Len(t, sentinels, len(names))
	names = slices.AppendSeq(names, maps.Keys(standards))
	c, dev := serveFlaky(t, control.Options{})
	reasons := make(map[string]string)
	for _, name := range names {
		sentinel := named(name)
		require.Error(t, sentinel, "%s is not in the test's table", name)
		if sentinel == control.ErrUnavailable {
			continue // the client's own
		}
		dev.set(func(f *flaky) { f.subscribe = fmt.Errorf("thing 7: %w", sentinel) })
		_, err := c.Channels.OpenChannel(background(t), &nfcommsv1.OpenChannelRequest{Name: loopback})
		for other, s := range sentinels {
			require.Equal(t, errors.Is(sentinel, s), errors.Is(err, s), "%s came as %v: is it %s?", name, err, other)
		}
		require.ErrorIs(t, err, sentinel, name)
		var e *control.Error
		require.ErrorAs(t, err, &e)
		require.ErrorContains(t, err, "thing 7")
		require.NotEmpty(t, e.Reason, name)
		require.Equal(t, control.Reason(sentinel), e.Reason)
		require.Empty(t, reasons[e.Reason], "%s and %s have one reason", name, reasons[e.Reason])
		reasons[e.Reason] = name
		require.NotEqual(t, codes.Unknown, status.Code(err), name)

		var op *nfcomms.OpError
		require.ErrorAs(t, err, &op, name)
		require.Equal(t, "subscribe", op.Op)
		require.Equal(t, nfcomms.Loopback, op.Target)
		require.Equal(t, "flaky:"+t.Name(), op.Device)
	}
}

// TestStatusTableOnTheWire walks the status table: code and reason are its.
func TestStatusTableOnTheWire(t *testing.T) {
	for s := abi.OK + 1; s < abi.StatusCount; s++ {
		row, ok := bridge.CodeOf(s)
		require.True(t, ok)
		err := control.ToStatus(row.Err)
		st := status.Convert(err)
		require.Equal(t, codes.Code(row.GRPC), st.Code(), row.Reason)
		info := st.Details()[0].(*errdetails.ErrorInfo)
		require.Equal(t, row.Reason, info.Reason)
		require.Equal(t, control.Domain, info.Domain)
		back := control.FromStatus(err)
		require.ErrorIs(t, back, row.Err)
		require.Equal(t, back, control.FromStatus(back), "an error that was decoded stays as it is")
		require.Equal(t, err, control.ToStatus(err), "a status stays as it is")
	}
	require.NoError(t, control.ToStatus(nil))
	require.NoError(t, control.FromStatus(nil))
	require.Equal(t, os.ErrNotExist, control.FromStatus(os.ErrNotExist))
}

// TestDetailsSurviveTheWire: errors.As finds what the error was made of.
func TestDetailsSurviveTheWire(t *testing.T) {
	wire := func(err error) error { return control.FromStatus(control.ToStatus(err)) }

	var size *nfcomms.SizeError
	require.ErrorAs(t, wire(&nfcomms.SizeError{Host: 1 << 40, Device: 7}), &size)
	require.Equal(t, nfcomms.SizeError{Host: 1 << 40, Device: 7}, *size)

	stopped := nfcomms.TransferError{Processed: 8, Outstanding: 9, List: 3, Entry: 2, Err: nfcomms.ErrDMA}
	var transfer *nfcomms.TransferError
	require.ErrorAs(t, wire(&stopped), &transfer)
	require.Equal(t, stopped, *transfer)

	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		err := wire(&nfcomms.WithdrawnError{Cause: cause})
		require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
		require.ErrorIs(t, err, cause)
		require.Equal(t, cause == context.DeadlineExceeded, err.(interface{ Timeout() bool }).Timeout())
	}

	var field *control.FieldError
	require.ErrorAs(t, wire(&control.FieldError{Field: "a.b", Err: nfcomms.ErrTooLarge}), &field)
	require.Equal(t, "a.b", field.Field)

	require.ErrorIs(t, wire(context.Canceled), context.Canceled)
	require.ErrorIs(t, wire(context.DeadlineExceeded), context.DeadlineExceeded)
	require.ErrorIs(t, wire(nfcomms.ErrClosed), net.ErrClosed, "sentinels answer for standard errors there too")
	require.ErrorIs(t, control.FromStatus(status.Error(codes.PermissionDenied, "no")), fs.ErrPermission)
	require.ErrorIs(t, control.FromStatus(status.Error(codes.Unimplemented, "no")), errors.ErrUnsupported)
	require.EqualError(t, wire(errors.New("odd\xff")), "odd\uFFFD", "text that is no UTF-8 does not lose the error")
	require.Equal(t, codes.Unknown, status.Code(wire(errors.New("odd"))))
}

// TestNewerServer: a reason that this client does not know keeps text and code.
func TestNewerServer(t *testing.T) {
	st, err := status.New(codes.Aborted, "new thing").WithDetails(&errdetails.ErrorInfo{Reason: "NEW", Domain: control.Domain})
	require.NoError(t, err)
	var e *control.Error
	require.ErrorAs(t, control.FromStatus(st.Err()), &e)
	require.Equal(t, "NEW", e.Reason)
	require.EqualError(t, e, "new thing")
	require.Equal(t, codes.Aborted, status.Code(e))
	for _, code := range []codes.Code{codes.PermissionDenied, codes.Unavailable} {
		st, err := status.New(code, "no").WithDetails(&errdetails.ErrorInfo{Reason: "NEW", Domain: control.Domain})
		require.NoError(t, err)
		came := control.FromStatus(st.Err())
		require.Equal(t, code == codes.PermissionDenied, errors.Is(came, fs.ErrPermission), came)
		require.NotErrorIs(t, came, control.ErrUnavailable, "it answered")
	}
}

// TestDeviceNodes: what the kernel says about a device node reaches a client with
// its meaning, and a device status says it better.
func TestDeviceNodes(t *testing.T) {
	for _, c := range []struct {
		err    error
		is     error
		reason string
		code   codes.Code
	}{
		{fmt.Errorf("reset: %w: needs CAP_SYS_ADMIN", syscall.EPERM), fs.ErrPermission, "PERMISSION", codes.PermissionDenied},
		{&os.PathError{Op: "open", Path: "/dev/nfcomms0", Err: syscall.EACCES}, fs.ErrPermission, "PERMISSION", codes.PermissionDenied},
		{&os.PathError{Op: "open", Path: "/dev/nfcomms0", Err: syscall.ENOENT}, fs.ErrNotExist, "NOT_EXIST", codes.NotFound},
		{fmt.Errorf("%w: %w", nfcomms.ErrInvalid, syscall.EPERM), nfcomms.ErrInvalid, "INVALID", codes.InvalidArgument},
		{fmt.Errorf("pin: %w: %w", nfcomms.ErrNoMemory, syscall.ENOMEM), nfcomms.ErrNoMemory, "NO_MEMORY", codes.ResourceExhausted},
		{fmt.Errorf("%w: %w", control.ErrNotOpen, fs.ErrNotExist), control.ErrNotOpen, "NOT_OPEN", codes.Unavailable},
	} {
		err := control.FromStatus(control.ToStatus(&nfcomms.OpError{Op: "open", Device: "dev:0", Err: c.err}))
		require.ErrorIs(t, err, c.is)
		require.Equal(t, c.reason, control.Reason(c.err))
		require.Equal(t, c.code, status.Code(err), err)
	}
}

// TestNoServer: an address where nobody listens.
func TestNoServer(t *testing.T) {
	c, err := control.Dial("unix://" + t.TempDir() + "/none.sock")
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Devices.ListDevices(background(t), nil)
	require.ErrorIs(t, err, control.ErrUnavailable)
	require.ErrorContains(t, err, "none.sock")
	_, err = control.Dial("dns:///localhost:1")
	require.ErrorContains(t, err, "transport security")
}

// TestDocumentListsEvents holds the table of events to the protos.
func TestDocumentListsEvents(t *testing.T) {
	text, err := os.ReadFile("../../docs/control.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `(TYPE_[A-Z_]+)` \\| ([A-Z]+) \\| \\S")
	rows := make(map[string]string)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = m[2]
	}
	for number, name := range nfcommsv1.Event_Type_name {
		severity, there := rows[name]
		require.Equal(t, number != 0, there, name)
		if there {
			require.Contains(t, nfcommsv1.Event_Severity_value, "SEVERITY_"+severity)
		}
		delete(rows, name)
	}
	require.Empty(t, rows, "documented, but not there")
}

// TestDocumentListsErrors holds the table of docs/control.md to the code.
func TestDocumentListsErrors(t *testing.T) {
	text, err := os.ReadFile("../../docs/control.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| ([A-Z_]+) \\| `([a-z]+\\.Err\\w+)` \\|")
	documented := make(map[string]bool)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		err := control.ToStatus(named(m[3]))
		require.Error(t, err, m[3])
		require.Equal(t, m[1], control.Reason(named(m[3])), m[3])
		var code codes.Code
		require.NoError(t, code.UnmarshalJSON([]byte(strconv.Quote(m[2]))))
		require.Equal(t, code, status.Code(err), m[3])
		documented[m[3]] = true
	}
	for name, sentinel := range sentinels {
		require.Equal(t, sentinel != control.ErrUnavailable, documented[name], name)
	}
	for name := range standards {
		require.True(t, documented[name], name)
	}
	for _, reason := range []string{access.ReasonRoleTooLow, access.ReasonUnknownPeer, access.ReasonNoPolicy} {
		require.Contains(t, string(text), "`"+reason+"`")
	}
}

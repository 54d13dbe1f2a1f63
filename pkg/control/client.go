package control

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// DefaultAddress is where the daemon of a machine listens.
const DefaultAddress = "unix:///run/nfcomms/nfcommsd.sock"

// UserSocket is where a daemon of the calling user's own listens: below
// XDG_RUNTIME_DIR, which belongs to the user alone. It is empty for root and
// without that variable.
func UserSocket() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if os.Geteuid() == 0 || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "nfcomms", "nfcommsd.sock")
}

// Address is the address of UserSocket if a socket is there, else DefaultAddress.
func Address() string {
	if path := UserSocket(); path != "" {
		if info, err := os.Stat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
			return "unix://" + path
		}
	}
	return DefaultAddress
}

// Client is a connection to a server. All methods are safe for concurrent use.
// Every error, also of the services in it, is an *Error that satisfies errors.Is
// with the sentinel it was made from.
type Client struct {
	// Devices, Channels, Messages, Diagnostics, Events, Groups, Fabrics, Boards and Versions
	// are the services of nfcomms.v1; Health is that of gRPC.
	Devices     nfcommsv1.DeviceServiceClient
	Channels    nfcommsv1.ChannelServiceClient
	Messages    nfcommsv1.MessageServiceClient
	Diagnostics nfcommsv1.DiagnosticServiceClient
	Events      nfcommsv1.EventServiceClient
	Groups      nfcommsv1.GroupServiceClient
	Fabrics     nfcommsv1.FabricServiceClient
	Boards      nfcommsv1.BoardServiceClient
	Versions    nfcommsv1.VersionServiceClient
	Health      healthpb.HealthClient

	close func() error
}

// Dial returns a client of the server at an address that grpc.NewClient takes.
// It does not wait for a connection: the first call reports whether there is one,
// with ErrUnavailable if not. A UNIX socket ("unix:PATH") needs no options, and a
// call waits while others flood it with connections; any other address needs
// grpc.WithTransportCredentials.
func Dial(address string, o ...grpc.DialOption) (*Client, error) {
	if strings.HasPrefix(address, "unix:") {
		o = append([]grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialUnix),
		}, o...)
	}
	conn, err := grpc.NewClient(address, o...)
	if err != nil {
		return nil, err
	}
	c := NewClient(conn)
	c.close = conn.Close
	return c, nil
}

// dialUnix connects to the UNIX socket of a target, "unix:PATH" or "unix://PATH",
// and waits for room in its backlog.
func dialUnix(ctx context.Context, target string) (net.Conn, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(target, "unix:"), "//")
	conn, err := fdpass.Dial(ctx, "unix", path)
	if err != nil {
		return nil, err // not conn: that would be an interface that holds nil
	}
	return conn, nil
}

// NewClient returns a client over a connection that stays the caller's.
func NewClient(conn grpc.ClientConnInterface) *Client {
	conn = decoding{conn}
	return &Client{
		Devices:     nfcommsv1.NewDeviceServiceClient(conn),
		Channels:    nfcommsv1.NewChannelServiceClient(conn),
		Messages:    nfcommsv1.NewMessageServiceClient(conn),
		Diagnostics: nfcommsv1.NewDiagnosticServiceClient(conn),
		Events:      nfcommsv1.NewEventServiceClient(conn),
		Groups:      nfcommsv1.NewGroupServiceClient(conn),
		Fabrics:     nfcommsv1.NewFabricServiceClient(conn),
		Boards:      nfcommsv1.NewBoardServiceClient(conn),
		Versions:    nfcommsv1.NewVersionServiceClient(conn),
		Health:      healthpb.NewHealthClient(conn),
		close:       func() error { return nil },
	}
}

// Close closes the connection if Dial made it. Calls under way end with
// context.Canceled.
func (c *Client) Close() error { return c.close() }

// decoding is a connection whose errors are *Error.
type decoding struct{ grpc.ClientConnInterface }

func (d decoding) Invoke(ctx context.Context, method string, args, reply any, o ...grpc.CallOption) error {
	return fromStatus(d.ClientConnInterface.Invoke(ctx, method, args, reply, o...))
}

func (d decoding) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, o ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := d.ClientConnInterface.NewStream(ctx, desc, method, o...)
	if err != nil {
		return nil, fromStatus(err)
	}
	return decodingStream{s}, nil
}

type decodingStream struct{ grpc.ClientStream }

func (s decodingStream) SendMsg(m any) error { return fromStatus(s.ClientStream.SendMsg(m)) }
func (s decodingStream) RecvMsg(m any) error { return fromStatus(s.ClientStream.RecvMsg(m)) }

// answerGrace is how much longer than its context a message call waits for the
// server's answer, which has what became of the message.
const answerGrace = 2 * time.Second

// exact returns the timeout for the server and a context for the call that give
// the server time to answer after ctx's deadline.
func exact(ctx context.Context) (context.Context, context.CancelFunc, *durationpb.Duration) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}, nil
	}
	late, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(answerGrace))
	stop := context.AfterFunc(ctx, func() {
		if ctx.Err() == context.Canceled {
			cancel()
		}
	})
	return late, func() { stop(); cancel() }, durationpb.New(max(0, time.Until(deadline)))
}

// tooLate returns what a message call whose context has ended returns: nothing was
// sent, so what became of the message is known.
func tooLate(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fromStatus(toStatus(&nfcomms.WithdrawnError{Cause: err}))
	}
	return nil
}

// Send gives a message of at most 56 bytes to the target of a channel that
// OpenChannel opened, and returns nil once the target took it. An error means
// that it was not delivered, but for ErrDeviceLost, ErrUnavailable and
// context.Canceled, after which its outcome is unknown. At ctx's deadline the server
// withdraws the message, and the error is nfcomms.ErrWithdrawn; the answer to
// that may take 2 s longer.
func (c *Client) Send(ctx context.Context, channel string, msg []byte) error {
	if err := tooLate(ctx); err != nil {
		return err
	}
	if err := fits(msg); err != nil {
		return err // gRPC has limits of its own, which would hide the reason
	}
	ctx, cancel, timeout := exact(ctx)
	defer cancel()
	_, err := c.Messages.SendMessage(ctx, &nfcommsv1.SendMessageRequest{Name: channel, Payload: msg, Timeout: timeout})
	return err
}

// Receive takes a message from the target of a channel that OpenChannel opened.
// At ctx's deadline the error is nfcomms.ErrWithdrawn, and no message is lost;
// after ErrUnavailable and context.Canceled one may be.
func (c *Client) Receive(ctx context.Context, channel string) ([]byte, error) {
	if err := tooLate(ctx); err != nil {
		return nil, err
	}
	ctx, cancel, timeout := exact(ctx)
	defer cancel()
	resp, err := c.Messages.ReceiveMessage(ctx, &nfcommsv1.ReceiveMessageRequest{Name: channel, Timeout: timeout})
	return resp.GetPayload(), err
}

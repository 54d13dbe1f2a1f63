package control

import (
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// DefaultAddress is where the daemon listens.
const DefaultAddress = "unix:///run/nfcomms/nfcommsd.sock"

// Client is a connection to a server. All methods are safe for concurrent use.
// Every error of its services satisfies errors.Is with the sentinel it was made
// from.
type Client struct {
	// Devices, Channels, Messages, Diagnostics, Events and Versions are the
	// services of nfcomms.v1; Health is that of gRPC.
	Devices     nfcommsv1.DeviceServiceClient
	Channels    nfcommsv1.ChannelServiceClient
	Messages    nfcommsv1.MessageServiceClient
	Diagnostics nfcommsv1.DiagnosticServiceClient
	Events      nfcommsv1.EventServiceClient
	Versions    nfcommsv1.VersionServiceClient
	Health      healthpb.HealthClient

	close func() error
}

// Dial returns a client of the server at an address that grpc.NewClient takes.
// It does not wait for a connection. A UNIX socket needs no options; any other
// address needs grpc.WithTransportCredentials.
func Dial(address string, o ...grpc.DialOption) (*Client, error) {
	conn, err := grpc.NewClient(address, o...)
	if err != nil {
		return nil, err
	}
	c := NewClient(conn)
	c.close = conn.Close
	return c, nil
}

// NewClient returns a client over a connection that stays the caller's.
func NewClient(conn grpc.ClientConnInterface) *Client {
	return &Client{
		Devices:     nfcommsv1.NewDeviceServiceClient(conn),
		Channels:    nfcommsv1.NewChannelServiceClient(conn),
		Messages:    nfcommsv1.NewMessageServiceClient(conn),
		Diagnostics: nfcommsv1.NewDiagnosticServiceClient(conn),
		Events:      nfcommsv1.NewEventServiceClient(conn),
		Versions:    nfcommsv1.NewVersionServiceClient(conn),
		Health:      healthpb.NewHealthClient(conn),
		close:       func() error { return nil },
	}
}

// Close closes the connection that Dial made. Calls under way end with
// CANCELLED.
func (c *Client) Close() error { return c.close() }

package control_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// rawCodec puts bytes on the wire as they are, under protobuf's name.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (rawCodec) Name() string                       { return "proto" }

// methods lists every method of the services, with whether it streams.
func methods() map[string]*grpc.StreamDesc {
	list := make(map[string]*grpc.StreamDesc)
	for _, d := range []grpc.ServiceDesc{
		nfcommsv1.DeviceService_ServiceDesc, nfcommsv1.ChannelService_ServiceDesc, nfcommsv1.MessageService_ServiceDesc,
		nfcommsv1.DiagnosticService_ServiceDesc, nfcommsv1.EventService_ServiceDesc, nfcommsv1.VersionService_ServiceDesc,
		nfcommsv1.GroupService_ServiceDesc, nfcommsv1.FabricService_ServiceDesc,
	} {
		for _, m := range d.Methods {
			list["/"+d.ServiceName+"/"+m.MethodName] = nil
		}
		for _, m := range d.Streams {
			list["/"+d.ServiceName+"/"+m.StreamName] = &m
		}
	}
	return list
}

// TestMalformedProtobuf: bytes that are no message end the call with a status,
// on every method, and harm nobody else.
func TestMalformedProtobuf(t *testing.T) {
	srv := control.New(quick)
	dial := listen(t, srv)
	require.NoError(t, srv.Open(background(t), "nic0", "sim:"))
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()

	bad := [][]byte{
		{0x0a},                         // a field without its length
		{0x0a, 0xff, 0xff, 0xff, 0x7f}, // longer than the message
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, // a number too long
		{0x0b, 0x0b, 0x0b}, // groups without an end
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		b := make([]byte, r.IntN(200))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		bad = append(bad, b)
	}
	for method, stream := range methods() {
		for i, b := range bad {
			code := status.Code(call(background(t), conn, method, stream, b))
			if i < 4 && method != "/nfcomms.v1.VersionService/GetVersion" {
				require.Contains(t, []codes.Code{codes.Internal, codes.InvalidArgument}, code, "%s % x", method, b)
			}
			require.NotEqual(t, codes.Unavailable, code, "%s % x, seed %d", method, b, seed)
		}
	}
	notText := []byte{0x0a, 0x02, 0xc3, 0x28} // a string that is no UTF-8
	require.Equal(t, codes.Internal, status.Code(call(background(t), conn, nfcommsv1.DeviceService_GetDevice_FullMethodName, nil, notText)))
	c := connect(t, dial)
	require.Equal(t, nfcommsv1.Device_STATE_READY, getDevice(t, c, nic0).State)
}

// call makes one call with raw bytes. A stream that continues is given up.
func call(ctx context.Context, conn *grpc.ClientConn, method string, stream *grpc.StreamDesc, in []byte) error {
	var out []byte
	if stream == nil {
		return conn.Invoke(ctx, method, &in, &out, grpc.ForceCodec(rawCodec{}))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := conn.NewStream(ctx, stream, method, grpc.ForceCodec(rawCodec{}))
	if err != nil {
		return err
	}
	if err := s.SendMsg(&in); err != nil {
		return s.RecvMsg(&out)
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	return s.RecvMsg(&out)
}

// TestInterceptorsSeeStatuses: what a server's interceptors count and log is
// the status that the client gets.
func TestInterceptorsSeeStatuses(t *testing.T) {
	var unary, streamed error
	srv := control.New(quick)
	dial := listen(t, srv,
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			resp, err := h(ctx, req)
			unary = err
			return resp, err
		}),
		grpc.StreamInterceptor(func(s any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			streamed = h(s, ss)
			return streamed
		}))
	c := connect(t, dial)
	require.ErrorIs(t, get(c, nic0)(background(t)), control.ErrNoDevice)
	require.Equal(t, codes.NotFound, status.Code(unary))
	require.ErrorIs(t, watchDevices(c, "AAAAAAAA")(background(t)), control.ErrResumeToken)
	require.Equal(t, codes.InvalidArgument, status.Code(streamed))
}

// TestTooLongForGRPC: bulk data that is sent without the client's check meets
// the server's limit.
func TestTooLongForGRPC(t *testing.T) {
	_, c := serveSim(t, quick)
	openChannel(t, c, loopback)
	require.ErrorIs(t, send(c, loopback, make([]byte, 1<<20))(background(t)), nfcomms.ErrTooLarge)
	err := send(c, loopback, make([]byte, 8<<20))(background(t))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.NoError(t, c.Send(background(t), loopback, nil))
}

func first(srv *control.Server) *nfcomms.Device {
	for _, dev := range srv.Devices() {
		return dev
	}
	return nil
}

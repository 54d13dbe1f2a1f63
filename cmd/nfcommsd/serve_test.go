package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/nfcomms/nfcomms/pkg/control/access"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// dial connects without the typed client.
func dial(t testing.TB, address string, o ...grpc.DialOption) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, o...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func plain() grpc.DialOption { return grpc.WithTransportCredentials(insecure.NewCredentials()) }

// reflected is what a generic client learns by reflection alone.
type reflected struct {
	services []string
	files    *protoregistry.Files
}

// reflect asks a server what it serves and fetches the descriptors, as grpcurl does.
func reflect(t testing.TB, conn *grpc.ClientConn) reflected {
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(deadline(t))
	require.NoError(t, err)
	ask := func(r *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		require.NoError(t, stream.Send(r))
		answer, err := stream.Recv()
		require.NoError(t, err)
		require.Nil(t, answer.GetErrorResponse(), "%v", r)
		return answer
	}
	var out reflected
	set := make(map[string]*descriptorpb.FileDescriptorProto)
	list := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	for _, s := range list.GetListServicesResponse().GetService() {
		out.services = append(out.services, s.GetName())
		answer := ask(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: s.GetName()}})
		for _, raw := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
			f := new(descriptorpb.FileDescriptorProto)
			require.NoError(t, proto.Unmarshal(raw, f))
			set[f.GetName()] = f
		}
	}
	require.NoError(t, stream.CloseSend())
	all := &descriptorpb.FileDescriptorSet{}
	for _, f := range set {
		all.File = append(all.File, f)
	}
	out.files, err = protodesc.NewFiles(all)
	require.NoError(t, err)
	return out
}

// method finds a method by its full name, "nfcomms.v1.DeviceService.ListDevices".
func (r reflected) method(t testing.TB, name string) protoreflect.MethodDescriptor {
	d, err := r.files.FindDescriptorByName(protoreflect.FullName(name))
	require.NoError(t, err)
	return d.(protoreflect.MethodDescriptor)
}

// invoke calls a unary method with an empty request of its type.
func invoke(t testing.TB, conn *grpc.ClientConn, m protoreflect.MethodDescriptor) (*dynamicpb.Message, error) {
	answer := dynamicpb.NewMessage(m.Output())
	path := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
	return answer, conn.Invoke(deadline(t), path, dynamicpb.NewMessage(m.Input()), answer)
}

// TestGenericClient: a client that knows nothing of us finds out everything.
func TestGenericClient(t *testing.T) {
	p := start(t)
	conn := dial(t, "unix://"+p.socket, plain())
	seen := reflect(t, conn)
	for _, want := range []string{"nfcomms.v1.DeviceService", "nfcomms.v1.ChannelService", "nfcomms.v1.MessageService",
		"nfcomms.v1.DiagnosticService", "nfcomms.v1.EventService", "nfcomms.v1.GroupService", "nfcomms.v1.VersionService", "grpc.health.v1.Health",
		"grpc.channelz.v1.Channelz", "grpc.reflection.v1.ServerReflection"} {
		require.Contains(t, seen.services, want)
	}
	answer, err := invoke(t, conn, seen.method(t, "nfcomms.v1.DeviceService.ListDevices"))
	require.NoError(t, err)
	devices := answer.Get(answer.Descriptor().Fields().ByName("devices")).List()
	require.Equal(t, 1, devices.Len())
	device := devices.Get(0).Message()
	require.Equal(t, "devices/sim0", device.Get(device.Descriptor().Fields().ByName("name")).String())

	answer, err = invoke(t, conn, seen.method(t, "grpc.health.v1.Health.Check"))
	require.NoError(t, err)
	require.EqualValues(t, healthpb.HealthCheckResponse_SERVING, answer.Get(answer.Descriptor().Fields().ByName("status")).Enum())

	answer, err = invoke(t, conn, seen.method(t, "grpc.channelz.v1.Channelz.GetServers"))
	require.NoError(t, err)
	require.NotZero(t, answer.Get(answer.Descriptor().Fields().ByName("server")).List().Len())
	p.stop()
}

// TestEveryMethodIsGuarded calls every method that the daemon serves as somebody
// without a role: each is denied, and each has a row in the table.
func TestEveryMethodIsGuarded(t *testing.T) {
	p := start(t, "--roles-admin", fmt.Sprintf("uid:%d", os.Geteuid()))
	conn := dial(t, "unix://"+p.socket, plain())
	seen := reflect(t, conn)
	denied := start(t, "--roles-admin", fmt.Sprintf("uid:%d", os.Geteuid()+1))
	conn = dial(t, "unix://"+denied.socket, plain())
	table := access.Methods()
	count := 0
	for _, name := range seen.services {
		d, err := seen.files.FindDescriptorByName(protoreflect.FullName(name))
		require.NoError(t, err)
		methods := d.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			path := fmt.Sprintf("/%s/%s", name, m.Name())
			require.Contains(t, table, path)
			stream, err := conn.NewStream(deadline(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path)
			require.NoError(t, err)
			_ = stream.SendMsg(dynamicpb.NewMessage(m.Input())) // it may be denied before
			_ = stream.CloseSend()
			err = stream.RecvMsg(dynamicpb.NewMessage(m.Output()))
			require.Equal(t, codes.PermissionDenied, status.Code(err), "%s: %v", path, err)
			count++
		}
	}
	require.Greater(t, count, 30)
	require.NotContains(t, denied.log.String(), "panicked")
	denied.stop()
	p.stop()
}

// TestWrongUser: another user gets in with a role, and only then.
func TestWrongUser(t *testing.T) {
	other := &syscall.Credential{Uid: 65534, Gid: 65534}
	name := "uid:65534"
	if os.Geteuid() != 0 { // cannot become another: be the wrong one
		other, name = nil, fmt.Sprintf("uid:%d", os.Geteuid())
	}
	p := start(t, "--socket-mode", "0666", "--roles-admin", "uid:4242")
	out := probeAs(t, "unix://"+p.socket, other)
	require.Contains(t, out, "PermissionDenied")
	require.Contains(t, out, "needs the role viewer")
	p.stop()

	p = start(t, "--socket-mode", "0666", "--roles-viewer", name)
	require.Equal(t, "OK", probeAs(t, "unix://"+p.socket, other))
	p.stop()

	if os.Geteuid() == 0 {
		p = start(t, "--socket-mode", "0600", "--roles-viewer", name)
		require.Contains(t, probeAs(t, "unix://"+p.socket, other), "Unavailable", "the mode keeps it out")
		p.stop()
	}
}

// TestDeviceFails: one that cannot be opened is listed, health says so, and the
// others are served.
func TestDeviceFails(t *testing.T) {
	p := start(t, "--devices", "good=sim:,bad=dev:9999")
	c := p.client()
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, c, ""))
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, c, "device/good"))
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, healthOf(t, c, "device/bad"))
	list, err := c.Devices.ListDevices(deadline(t), &nfcommsv1.ListDevicesRequest{})
	require.NoError(t, err)
	require.Len(t, list.Devices, 2)
	require.Equal(t, nfcommsv1.Device_STATE_FAILED, list.Devices[0].State)
	require.Contains(t, list.Devices[0].GetFailure().GetMessage(), "nfcomms9999")
	p.logged(`status="1 of 2 devices serve"`)
	p.stop()
}

// TestNothingServes: with no device that works the daemon still answers, and
// says NOT_SERVING.
func TestNothingServes(t *testing.T) {
	p := start(t, "--devices", "bad=dev:9999")
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, healthOf(t, p.client(), ""))
	p.stop()
}

// TestLimits: too large a request.
func TestLimits(t *testing.T) {
	p := start(t, "--limits-message-bytes", "8192")
	c := p.client()
	_, err := c.Devices.GetDevice(deadline(t), &nfcommsv1.GetDeviceRequest{Name: strings.Repeat("x", 10_000)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	require.ErrorContains(t, err, "8192")
	_, err = c.Devices.ListDevices(deadline(t), &nfcommsv1.ListDevicesRequest{})
	require.NoError(t, err)
	p.stop()
}

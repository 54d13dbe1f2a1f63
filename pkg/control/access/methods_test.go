package access

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// ours lists every method of package nfcomms.v1 by its descriptor.
func ours() []string {
	var all []string
	protoregistry.GlobalFiles.RangeFilesByPackage("nfcomms.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for k := range s.Methods().Len() {
				all = append(all, "/"+string(s.FullName())+"/"+string(s.Methods().Get(k).Name()))
			}
		}
		return true
	})
	return all
}

// grpcs lists every method of the services that gRPC brings.
func grpcs() []string {
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	channelz.RegisterChannelzServiceToServer(s)
	var all []string
	for name, info := range s.GetServiceInfo() {
		for _, m := range info.Methods {
			all = append(all, "/"+name+"/"+m.Name)
		}
	}
	return all
}

// TestEveryMethodHasARole holds the table to the services, both ways.
func TestEveryMethodHasARole(t *testing.T) {
	table := Methods()
	known := append(ours(), grpcs()...)
	require.Greater(t, len(known), 20)
	for _, m := range known {
		require.Contains(t, []Role{Viewer, Operator, Admin}, table[m], m)
		delete(table, m)
	}
	require.Empty(t, table, "rows of methods that are not there")
}

// TestLookingNeedsNoMore holds the table to its rule: what only looks is open
// to viewers, all else is not.
func TestLookingNeedsNoMore(t *testing.T) {
	for _, m := range ours() {
		_, name, _ := strings.Cut(m[1:], "/")
		looks := false
		for _, verb := range []string{"List", "Get", "Watch", "Ping"} {
			looks = looks || strings.HasPrefix(name, verb)
		}
		require.Equal(t, looks, methods[m] == Viewer, m)
	}
}

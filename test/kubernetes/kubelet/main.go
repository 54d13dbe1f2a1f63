// Command kubelet is the kubelet of Kubernetes. As "kubelet runtime SOCKET" it is the container runtime
// without containers that Kubernetes has for tests, and writes to its output, as JSON, what each
// container is created with.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"k8s.io/component-base/cli"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

// recorder is a runtime whose containers are written down.
type recorder struct{ *fake.RemoteRuntime }

// CreateContainer writes what the container is created with.
func (r recorder) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	if err := json.NewEncoder(os.Stdout).Encode(req.GetConfig()); err != nil {
		return nil, err
	}
	return r.RemoteRuntime.CreateContainer(ctx, req)
}

// serve is a runtime until the process is killed.
func serve(socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	r := recorder{fake.NewFakeRemoteRuntime()}
	r.RuntimeService.FakeStatus = &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true},
		{Type: runtimeapi.NetworkReady, Status: true},
	}}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	runtimeapi.RegisterImageServiceServer(server, r)
	return server.Serve(l)
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "runtime" {
		fmt.Fprintln(os.Stderr, "kubelet:", serve(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(cli.Run(app.NewKubeletCommand(context.Background())))
}

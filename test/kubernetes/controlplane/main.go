// Command controlplane is one program of a cluster, which its first argument names.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// programs make the commands. A process may make one, as each takes the signals for itself.
var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "controlplane: want kube-apiserver, kube-controller-manager or kube-scheduler, and its flags")
		os.Exit(2)
	}
	c := programs[os.Args[1]]()
	os.Args = os.Args[1:]
	os.Exit(cli.Run(c))
}

package vm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUMLArgs(t *testing.T) {
	m := Machine{UML: true, Kernel: "/k/linux", Initrd: "/log/initrd.cpio", Devices: []Port{{Socket: "/tmp/0.sock"}}, Memory: 256, Append: []string{"kmemleak=on"}}
	args := m.Args()
	for _, want := range []string{
		"mem=256M", "initrd=/log/initrd.cpio", "uml_dir=/log", "con0=null,fd:3", "ssl1=null,fd:1",
		"virtio_uml.device=/tmp/0.sock:1234", "oops=panic", "ignore_loglevel",
	} {
		require.Contains(t, args, want)
	}
	require.Equal(t, "kmemleak=on", args[len(args)-1])
	require.Contains(t, m.Command(), "/k/linux mem=256M")
	m.Console = true
	require.Contains(t, m.Args(), "ssl0=fd:0,fd:1")
	require.NotContains(t, m.Args(), "ssl1=null,fd:1")
}

// TestUMLIsDone compares how the two kinds of machine say that all was done.
func TestUMLIsDone(t *testing.T) {
	for _, c := range []struct {
		m      Machine
		status int
		want   bool
	}{
		{Machine{UML: true}, 0, true}, {Machine{UML: true}, ExitDone, false}, {Machine{UML: true}, -1, false},
		{Machine{}, 0, false}, {Machine{}, ExitDone, true},
	} {
		require.Equal(t, c.want, c.m.Done(c.status), "%v", c)
	}
}

package vm

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// after returns the argument behind a flag, each time it is given.
func after(args []string, flag string) []string {
	var found []string
	for i, a := range args[:len(args)-1] {
		if a == flag {
			found = append(found, args[i+1])
		}
	}
	return found
}

func TestArgs(t *testing.T) {
	m := Machine{QEMU: "qemu", Kernel: "k", Initrd: "i"}
	args := m.Args()
	require.Equal(t, []string{"tcg,thread=multi"}, after(args, "-accel"))
	require.Equal(t, []string{"2"}, after(args, "-smp"))
	require.Equal(t, []string{"512M"}, after(args, "-m"))
	require.Equal(t, []string{"chardev:console", "chardev:results"}, after(args, "-serial"))
	require.Equal(t, []string{"isa-debug-exit,iobase=0xf4,iosize=0x04"}, after(args, "-device"))
	require.NotContains(t, after(args, "-append")[0], "iommu")
	require.Contains(t, after(args, "-append")[0], "oops=panic")

	m.CPUs, m.Memory, m.Append = 1, 2048, []string{"kmemleak=on"}
	args = m.Args()
	require.Equal(t, []string{"1"}, after(args, "-smp"))
	require.Equal(t, []string{"2048M"}, after(args, "-m"))
	require.Contains(t, after(args, "-object")[0], "size=2048M,share=on")
	require.True(t, strings.HasSuffix(after(args, "-append")[0], " kmemleak=on"))
}

func TestArgsOfAnotherProcessor(t *testing.T) {
	m := Machine{Arch: ARM64, Devices: []Port{{Socket: "/tmp/a"}}}
	args := m.Args()
	require.Equal(t, []string{"virt,gic-version=3,memory-backend=mem"}, after(args, "-machine"))
	require.Len(t, after(args, "-device"), 1, "no port of x86")
	require.Contains(t, after(args, "-append")[0], "console=ttyAMA0")
	require.NotContains(t, after(args, "-append")[0], "no_timer_check")
	require.Equal(t, "/dev/ttyAMA1", m.Serial(1))
	require.Equal(t, "/dev/ttyS1", Machine{}.Serial(1))
}

func TestDeviceComesAfterItsIOMMU(t *testing.T) {
	socket := `/tmp/a "b"/s.sock`
	m := Machine{Devices: []Port{{Socket: socket}, {Socket: "/tmp/other", Timeout: time.Second}}, IOMMU: true}
	devices := after(m.Args(), "-device")
	require.Len(t, devices, 4)
	require.Equal(t, "intel-iommu,caching-mode=on", devices[1])
	var device struct {
		Driver  string
		Bus     string
		Timeout int `json:"x-msg-timeout"`
		Socket  struct{ Path, Type string }
	}
	require.NoError(t, json.Unmarshal([]byte(devices[2]), &device))
	require.Equal(t, "vfio-user-pci", device.Driver)
	require.Equal(t, socket, device.Socket.Path)
	require.Equal(t, "unix", device.Socket.Type)
	require.Equal(t, 60000, device.Timeout)
	require.Equal(t, "pcie.0", device.Bus)
	require.Contains(t, devices[3], `"x-msg-timeout":1000`)
	require.Contains(t, after(m.Args(), "-append")[0], "iommu.strict=1")
}

func TestPorts(t *testing.T) {
	devices := after(Machine{Devices: []Port{{Socket: "/tmp/a"}, {Socket: "/tmp/b"}}, Ports: true}.Args(), "-device")
	require.Len(t, devices, 5)
	require.Contains(t, devices[3], "pcie-root-port,id=port1,")
	require.Contains(t, devices[4], `"bus":"port1"`)
}

func TestConsole(t *testing.T) {
	args := Machine{Console: true}.Args()
	require.Contains(t, args, "stdio,id=console,signal=off")
	require.NotContains(t, strings.Join(args, " "), "/dev/fd/3")
}

// TestCommandSurvivesTheShell has a shell take the command apart again.
func TestCommandSurvivesTheShell(t *testing.T) {
	m := Machine{QEMU: "/x y/qemu", Kernel: "it's", Initrd: "$HOME", Devices: []Port{{Socket: "/tmp/s"}}, Append: []string{"a=`b`"}}
	out, err := exec.Command("sh", "-c", "for a in "+strings.TrimSuffix(m.Command(), " 3>&2")+`; do printf '%s\n' "$a"; done`).Output()
	require.NoError(t, err)
	require.Equal(t, append([]string{m.QEMU}, m.Args()...), strings.Split(strings.TrimSpace(string(out)), "\n"))
}

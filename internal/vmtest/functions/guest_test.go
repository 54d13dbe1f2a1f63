//go:build linux

package functions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
	"github.com/nfcomms/nfcomms/internal/support"
	_ "github.com/nfcomms/nfcomms/internal/vfio"
)

const (
	sysfs = "/sys/bus/pci"
	// holder names a function that a child of this program opens, and has until it is killed.
	holder = "NFC_HOLDER"
)

// places are those of the functions, which vfio-pci has.
var places []string

func TestMain(m *testing.M) {
	switch {
	case os.Getenv("NFC_VM") != "1":
		os.Exit(0) // go test ./... on a host: there is no such function
	case os.Getenv(holder) != "":
		hold(os.Getenv(holder))
	}
	if err := bindAll(); err != nil {
		fmt.Fprintln(os.Stderr, "bind functions:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// bindAll gives all functions to vfio-pci.
func bindAll() error {
	all, err := filepath.Glob(sysfs + "/devices/*")
	for _, folder := range all {
		text, _ := os.ReadFile(filepath.Join(folder, "device"))
		if strings.TrimSpace(string(text)) == "0x4e46" {
			place := filepath.Base(folder)
			places = append(places, place)
			err = errors.Join(err, bind(place))
		}
	}
	return err
}

func bind(place string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(sysfs, "devices", place, "driver_override"), []byte("vfio-pci"), 0),
		os.WriteFile(sysfs+"/drivers_probe", []byte(place), 0))
}

func unbind(place string) error {
	return os.WriteFile(sysfs+"/drivers/vfio-pci/unbind", []byte(place), 0)
}

// open opens a function.
func open(t *testing.T, place string) bridge.Device {
	t.Helper()
	dev, err := bridge.Open(t.Context(), "vfio:"+place, nil)
	require.NoError(t, err)
	return dev
}

// start starts a program with one target.
func start(t *testing.T, dev bridge.Device) (bridge.Process, error) {
	return dev.Start(t.Context(), bridge.Program{Name: "loopback", Targets: 1})
}

// TestConformance runs every rule of the contract.
func TestConformance(t *testing.T) {
	var addresses []string
	for _, place := range places {
		addresses = append(addresses, "vfio:"+place)
	}
	pool := bridgetest.Pool(addresses)
	bridgetest.Run(t, func(t *testing.T, options string) bridge.Device { return spectest.Verified(t, pool(t, options)) })
}

func TestSupport(t *testing.T) {
	dev := open(t, places[0])
	require.Empty(t, support.Differences(t.Context(), "vfio", dev))
	require.NoError(t, dev.Close())
}

// TestIsExclusive: a second process is refused, and finds nothing of the first when that has closed.
func TestIsExclusive(t *testing.T) {
	first := open(t, places[0])
	p, err := start(t, first)
	require.NoError(t, err)
	_, err = bridge.Open(t.Context(), "vfio:"+places[0], nil)
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.ErrorContains(t, err, "another process has a function of IOMMU group")
	require.NoError(t, first.Close())
	second := open(t, places[0])
	require.ErrorIs(t, second.Stop(t.Context(), p.ID), bridge.ErrInvalid, "it ended with its client")
	require.NoError(t, second.Close())
}

// hold opens a function, says so, and waits for its end.
func hold(place string) {
	dev, err := bridge.Open(context.Background(), "vfio:"+place, nil)
	if err == nil {
		_, err = dev.Start(context.Background(), bridge.Program{Name: "loopback", Targets: 1})
	}
	fmt.Println("open", err)
	select {}
}

// TestKilled: a process that is killed gives its function back, reset.
func TestKilled(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), holder+"="+places[0])
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line := make([]byte, len("open <nil>\n"))
	_, err = out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "open <nil>\n", string(line))
	_, err = bridge.Open(t.Context(), "vfio:"+places[0], nil)
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	dev := open(t, places[0])
	_, err = start(t, dev)
	require.NoError(t, err)
	require.NoError(t, dev.Close())
}

// TestTakenBack: the system takes a function back when its owner has closed it. Calls of the owner end
// with an error soon.
func TestTakenBack(t *testing.T) {
	place := places[0]
	dev := open(t, place)
	p, err := start(t, dev)
	require.NoError(t, err)
	ch, err := dev.Subscribe(t.Context(), p.First)
	require.NoError(t, err)
	waits := make(chan error, 1)
	go func() {
		_, err := ch.Receive(context.Background(), make([]byte, 8))
		waits <- err
	}()
	unbound := make(chan error, 1)
	go func() { unbound <- unbind(place) }()
	require.ErrorIs(t, <-waits, bridge.ErrDeviceLost)
	select {
	case err := <-unbound:
		t.Fatal("unbound under its owner:", err)
	default:
	}
	require.NoError(t, dev.Close())
	require.NoError(t, <-unbound)

	_, err = bridge.Open(t.Context(), "vfio:"+place, nil)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	require.ErrorContains(t, err, "has no driver: bind it to vfio-pci")
	require.NoError(t, bind(place))
	require.NoError(t, open(t, place).Close())
}

// TestPinsWhatIsAllocated: memory is pinned while it is allocated, and no longer.
func TestPinsWhatIsAllocated(t *testing.T) {
	dev := open(t, places[0])
	before := locked(t)
	mem, err := dev.Alloc(32 << 20)
	require.NoError(t, err)
	require.GreaterOrEqual(t, locked(t)-before, 32<<10)
	require.NoError(t, mem.Close())
	require.NoError(t, dev.Close())
	require.Zero(t, locked(t))
}

// locked returns this process' locked memory in KiB.
func locked(t *testing.T) (kib int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(text), "VmLck:")
	require.True(t, ok)
	_, err = fmt.Sscan(after, &kib)
	require.NoError(t, err)
	return kib
}

// TestRefused: what is no function, and what is another's, is refused with what to do about it.
func TestRefused(t *testing.T) {
	_, err := bridge.Open(t.Context(), "vfio:0000:1f:1f.7", nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "lspci")
	_, err = bridge.Open(t.Context(), "vfio:0000:00:00.0", nil)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = bridge.Open(ctx, "vfio:"+places[0]+"?slots=3", nil)
	require.ErrorIs(t, err, bridge.ErrInvalid)
}

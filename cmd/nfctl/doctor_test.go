package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// fakeHost is a tree with what doctor reads, of a host where all is well.
func fakeHost() map[string]string {
	return map[string]string{
		"/sys/module/nfcomms/version":              "1.2.3\n",
		"/sys/bus/pci/devices/0000:01:00.0/vendor": pciVendor + "\n",
		"/sys/bus/pci/devices/0000:01:00.0/device": pciDevice + "\n",
		"/sys/bus/pci/devices/0000:02:00.0/vendor": "0x8086\n",
		"/dev/nfcomms0":                             "",
		"/etc/group":                                "root:x:0:\nnfcomms-dev:x:900:alice,bob\n",
		"/etc/passwd":                               "root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n",
		"/sys/kernel/iommu_groups/0/type":           "DMA\n",
		"/proc/self/limits":                         limits("8388608", "20000"),
		"/proc/self/cgroup":                         "0::/user\n",
		"/proc/77/comm":                             "nfcommsd\n",
		"/proc/77/limits":                           limits("unlimited", "65536"),
		"/proc/77/cgroup":                           "0::/system/nfcommsd\n",
		"/proc/77/environ":                          "PATH=/bin\x00GOMEMLIMIT=900MiB\x00",
		"/sys/fs/cgroup/system/nfcommsd/cpu.max":    "400000 100000\n",
		"/sys/fs/cgroup/system/nfcommsd/memory.max": "1073741824\n",
		"/sys/fs/cgroup/user/cpu.max":               "max 100000\n",
		"/sys/fs/cgroup/user/memory.max":            "max\n",
	}
}

func limits(memlock, files string) string {
	return fmt.Sprintf("%-26s%-21s%-21s%-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units") +
		fmt.Sprintf("%-26s%-21s%-21s%-10s\n", "Max open files", files, files, "files") +
		fmt.Sprintf("%-26s%-21s%-21s%-10s\n", "Max locked memory", memlock, memlock, "bytes")
}

// plant writes a tree and returns its root.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o660))
		require.NoError(t, os.Chmod(path, 0o660)) // whatever the umask says
	}
	return root
}

// newDoctorFor is a doctor for a tree, run by alice, with nobody to ask.
func newDoctorFor(t *testing.T) *doctor {
	t.Helper()
	root := plant(t, fakeHost())
	c, err := control.Dial("unix:" + filepath.Join(root, "none"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return &doctor{
		root: root, who: identity{uid: 1000, groups: []int{1000, 900, os.Getegid()}},
		address: "unix:/run/none", client: c, schemes: []string{"dev", "sim"},
		open: func(context.Context, string) (nfcomms.Info, error) { return nfcomms.Info{Major: 1}, nil },
	}
}

// find returns the findings of one check.
func find(r doctorRecord, check string) (found []findingRecord) {
	for _, f := range r.Findings {
		if f.Check == check {
			found = append(found, f)
		}
	}
	return found
}

// TestDoctorHost changes one thing at a time on a host where all is well.
func TestDoctorHost(t *testing.T) {
	for name, tc := range map[string]struct {
		check, status, detail, fix string
		change                     change
	}{
		"module":          {"module", statusOK, "loaded, version 1.2.3, 1 PCI devices", "", nil},
		"module missing":  {"module", statusError, "1 PCI devices, and the module is not loaded", "modprobe nfcomms", without("/sys/module/nfcomms")},
		"no device":       {"module", statusSkipped, "no PCI device", "", without("/sys/module/nfcomms", "/sys/bus/pci/devices/0000:01:00.0/vendor")},
		"nodes":           {"device-nodes", statusOK, "/dev/nfcomms0 has mode 0660", "", nil},
		"no nodes":        {"device-nodes", statusSkipped, "sim:", "", without("/dev/nfcomms0")},
		"node of others":  {"device-nodes", statusError, "may not open it", "usermod -aG nfcomms", as(4711)},
		"node of all":     {"device-nodes", statusWarning, "everybody may open it", `MODE="0660"`, mode("/dev/nfcomms0", 0o666)},
		"group":           {"group", statusOK, "in the group nfcomms-dev (900)", "", nil},
		"no group":        {"group", statusError, "no group nfcomms", "groupadd", without("/etc/group")},
		"group not taken": {"group", statusWarning, "this session began before", "log in again", as(1000)},
		"not in group":    {"group", statusWarning, "not in the group", "usermod", as(4711)},
		"no group needed": {"group", statusSkipped, "no node needs it", "", without("/etc/group", "/dev/nfcomms0")},
		"abi":             {"device-abi", statusOK, "dev:0: firmware has ABI 1.0", "", nil},
		"wrong abi":       {"device-abi", statusError, "built for another ABI", "same release", opens(nfcomms.ErrABI)},
		"node refused":    {"device-abi", statusSkipped, "see device-nodes", "", opens(fs.ErrPermission)},
		"node dead":       {"device-abi", statusError, "device lost", "dmesg", opens(nfcomms.ErrDeviceLost)},
		"no back end":     {"device-abi", statusSkipped, "without the back end", "", func(_ *testing.T, d *doctor) { d.schemes = []string{"sim"} }},
		"iommu":           {"iommu", statusOK, "1 IOMMU groups", "", nil},
		"no iommu":        {"iommu", statusWarning, "all memory of this host", "intel_iommu=on", without("/sys/kernel/iommu_groups/0")},
		"memlock":         {"memlock", statusOK, "nfcommsd, process 77: unlimited", "", nil},
		"memlock low":     {"memlock", statusError, "nfcommsd, process 77 may pin 8 MiB, at least 64 MiB", "LimitMEMLOCK=infinity", write("/proc/77/limits", limits("8388608", "9999"))},
		"memlock shell":   {"memlock", statusError, "this shell may pin 8 MiB", "ulimit -l", without("/proc/77/comm")},
		"memlock unused":  {"memlock", statusOK, "no device here pins memory", "", without("/proc/77/comm", "/dev/nfcomms0")},
		"memlock enough":  {"memlock", statusOK, "64 MiB", "", write("/proc/77/limits", limits("67108864", "9999"))},
		"limits unknown":  {"memlock", statusWarning, `does not tell "max locked memory"`, "mount /proc", write("/proc/77/limits", "Max locked memory\n")},
		"files":           {"open-files", statusOK, "65536", "", nil},
		"files low":       {"open-files", statusWarning, "may open 512 files", "LimitNOFILE", write("/proc/77/limits", limits("unlimited", "512"))},
		"files unlimited": {"open-files", statusOK, "unlimited", "", write("/proc/77/limits", limits("unlimited", "unlimited"))},
		"files unknown":   {"open-files", statusWarning, "does not tell", "mount /proc", write("/proc/77/limits", "")},
		"quota":           {"processors", statusWarning, "a quota of 0.5 processors", "CPUQuota", write("/sys/fs/cgroup/system/nfcommsd/cpu.max", "50000 100000")},
		"memory":          {"memory", statusOK, "limit of 1 GiB, GOMEMLIMIT is set", "", nil},
		"memory unknown":  {"memory", statusWarning, "does not know", "GOMEMLIMIT=921MiB", write("/proc/77/environ", "PATH=/bin\x00")},
		"memory secret":   {"memory", statusSkipped, "may not be read", "", without("/proc/77/environ")},
		"no limit":        {"memory", statusOK, "no limit", "", without("/proc/77/comm")},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoctorFor(t)
			if tc.change != nil {
				tc.change(t, d)
			}
			found := find(d.examine(t.Context()), tc.check)
			require.Len(t, found, 1)
			require.Equal(t, tc.status, found[0].Status, "%+v", found[0])
			require.Contains(t, found[0].Detail, tc.detail)
			require.Contains(t, found[0].Fix, tc.fix)
			require.Equal(t, tc.fix == "", found[0].Fix == "", "%+v", found[0])
		})
	}
}

// change makes something wrong on a host where all is well.
type change func(t *testing.T, d *doctor)

// without removes files.
func without(names ...string) change {
	return func(t *testing.T, d *doctor) {
		for _, name := range names {
			require.NoError(t, os.RemoveAll(d.path(name)))
		}
	}
}

// write writes a file.
func write(name, text string) change {
	return func(t *testing.T, d *doctor) {
		require.NoError(t, os.WriteFile(d.path(name), []byte(text), 0o660))
	}
}

// mode changes the mode of a file.
func mode(name string, m fs.FileMode) change {
	return func(t *testing.T, d *doctor) { require.NoError(t, os.Chmod(d.path(name), m)) }
}

// as makes doctor run as a user without groups.
func as(uid int) change {
	return func(_ *testing.T, d *doctor) { d.who = identity{uid: uid, groups: []int{uid}} }
}

// opens makes each device node fail to open.
func opens(err error) change {
	return func(_ *testing.T, d *doctor) {
		d.open = func(context.Context, string) (nfcomms.Info, error) { return nfcomms.Info{}, err }
	}
}

// TestDoctorSocket tries what may be wrong with the path to a server.
func TestDoctorSocket(t *testing.T) {
	ask := func(t *testing.T, d *doctor) map[string]findingRecord {
		r := d.examine(t.Context())
		found := make(map[string]findingRecord)
		for _, check := range []string{"socket", "server", "role", "devices"} {
			list := find(r, check)
			require.Len(t, list, 1, check)
			found[check] = list[0]
			require.Contains(t, []string{statusOK, statusSkipped, statusWarning, statusError}, list[0].Status)
		}
		return found
	}
	at := func(t *testing.T, path string) *doctor {
		d := newDoctorFor(t)
		d.root, d.address = "/", "unix:"+path
		c, err := control.Dial(d.address)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		d.client = c
		d.who = identity{uid: os.Geteuid(), groups: []int{os.Getegid()}}
		return d
	}
	dir, err := os.MkdirTemp("", "doctor")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "s")

	d := at(t, path)
	found := ask(t, d)
	require.Equal(t, statusWarning, found["socket"].Status, "nobody asked for this address")
	require.Equal(t, statusWarning, found["server"].Status)
	require.Equal(t, statusSkipped, found["role"].Status)
	require.Equal(t, statusSkipped, found["devices"].Status)
	d.explicit = true
	found = ask(t, d)
	require.Equal(t, statusError, found["socket"].Status)
	require.Equal(t, statusError, found["server"].Status)

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.Contains(t, ask(t, d)["socket"].Detail, "is not a socket")
	require.NoError(t, os.Remove(path))

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o600))
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.Contains(t, ask(t, d)["socket"].Detail, "connection refused")
	d.who = identity{uid: os.Geteuid() + 1}
	require.Contains(t, ask(t, d)["socket"].Detail, "may not open it")
	require.NoError(t, os.Remove(path))
}

// TestDoctorServer asks real servers.
func TestDoctorServer(t *testing.T) {
	_, address := startHost(t, hostOptions{role: "operator", devices: []string{"bad=broken:", "gone=lost:", "sick=sick:", "sim0=sim:"}})
	r := nfctl(t.Context(), t, "doctor", "--address", address)
	require.Equal(t, exitUnhealthy, r.code)
	for _, want := range []string{
		"this user is operator", "bad is failed: open broken: out of resources", "sick is degraded", "sim0 is ready", "fix: nfctl info sick says more",
		"fix: do what the message says, or mend its address in the configuration; the server tries again by itself",
		"gone is failed: health lost: device lost", "fix: nfctl reset gone",
	} {
		require.Contains(t, r.out, want)
	}
	require.Equal(t, 1, strings.Count(r.err, "\n"), r.err)

	_, empty := startHost(t, hostOptions{})
	r = nfctl(t.Context(), t, "doctor", "--address", empty)
	require.Contains(t, r.out, "the server has no devices")
	require.Contains(t, r.out, "everybody who may connect may do everything")
}

// TestDoctorDevice: a device that does not open is a finding, with all others; an
// address that makes no sense is a mistake of the command line.
func TestDoctorDevice(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nfcomms0")
	for address, want := range map[string]string{
		"dev:" + missing: "no such file or directory: the module nfcomms is",
		"broken:":        "device not open: open broken: out of resources",
	} {
		r := nfctl(t.Context(), t, "doctor", "--device", address)
		require.Equal(t, exitUnhealthy, r.code, r.err)
		require.Regexp(t, "error +devices +"+regexp.QuoteMeta("device not open: open "+address), r.out)
		require.Contains(t, r.out, want)
		require.Contains(t, r.out, "fix: do what the message says")
		require.Contains(t, r.out, "memlock")
	}
	r := nfctl(t.Context(), t, "doctor", "--device", "dev:x")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "want a number")
	r = nfctl(t.Context(), t, "doctor", "--device", "sim:")
	require.Contains(t, r.out, "local is ready")
}

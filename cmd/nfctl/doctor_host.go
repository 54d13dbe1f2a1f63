package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// The vendor and device numbers of firmware/nfc_pci.h, as sysfs writes them.
const (
	pciVendor = "0x1234"
	pciDevice = "0x4e46"
)

// nodeGroup is the group that udev gives the nodes, and socketGroup the one that
// systemd gives the daemon's socket.
const (
	nodeGroup   = "nfcomms-dev"
	socketGroup = "nfcomms"
)

// module searches for the kernel module.
func (d *doctor) module(context.Context) []findingRecord {
	pci := 0
	for _, dir := range d.glob("/sys/bus/pci/devices/*") {
		if d.read(dir+"/vendor") == pciVendor && d.read(dir+"/device") == pciDevice {
			pci++
		}
	}
	if m := moduleOf(d.root); m != nil {
		return one(statusOK, fmt.Sprintf("loaded, version %s, %d PCI devices", orDash(m.Version), pci), "")
	}
	if pci > 0 {
		return one(statusError, fmt.Sprintf("%d PCI devices, and the module is not loaded", pci),
			"modprobe nfcomms; if there is no such module, build it with make -C kmod or install its package")
	}
	return one(statusSkipped, "not loaded, and no PCI device needs it", "")
}

// nodes checks each device node.
func (d *doctor) nodes(context.Context) []findingRecord {
	list := d.deviceNodes()
	if len(list) == 0 {
		return one(statusSkipped, "no /dev/nfcomms*: only devices without a driver, such as sim:, can be opened", "")
	}
	var found []findingRecord
	for _, name := range list {
		found = append(found, d.node(name))
	}
	return found
}

func (d *doctor) node(name string) findingRecord {
	st, err := os.Stat(d.path(name))
	if err != nil {
		return findingRecord{Status: statusError, Detail: err.Error(), Fix: "look at the kernel's log: dmesg | grep nfcomms"}
	}
	o := ownerOf(st)
	text := fmt.Sprintf("%s has mode %04o, user %d, group %d", name, st.Mode().Perm(), o.uid, o.gid)
	switch {
	case !d.may(st, 0o6):
		return findingRecord{Status: statusError, Detail: text + ": this user may not open it",
			Fix: fmt.Sprintf("usermod -aG %s USER, then log in again; udev gives nodes to that group with GROUP=\"%s\", MODE=\"0660\"", nodeGroup, nodeGroup)}
	case st.Mode().Perm()&0o006 != 0:
		return findingRecord{Status: statusWarning, Detail: text + ": everybody may open it, and with it let a device write memory",
			Fix: "set MODE=\"0660\" in the udev rule, then udevadm trigger"}
	}
	return findingRecord{Status: statusOK, Detail: text}
}

// owner is whom a file belongs to.
type owner struct{ uid, gid int }

// nobody owns a file of which nobody knows whose it is.
var nobody = owner{-1, -1}

// may reports whether this user has the given rights, as the last digit of a
// mode, on a file.
func (d *doctor) may(st fs.FileInfo, rights fs.FileMode) bool {
	o, mode := ownerOf(st), st.Mode().Perm()
	switch {
	case d.who.uid == 0:
		return true
	case d.who.uid == o.uid:
		mode >>= 6
	case slices.Contains(d.who.groups, o.gid):
		mode >>= 3
	}
	return mode&rights == rights
}

// group searches for the group and this user in it.
func (d *doctor) group(context.Context) []findingRecord {
	gid, members, ok := d.lookUpGroup(nodeGroup)
	switch {
	case !ok && len(d.deviceNodes()) == 0:
		return one(statusSkipped, "no group "+nodeGroup+", and no node needs it", "")
	case !ok:
		return one(statusError, "no group "+nodeGroup, "groupadd --system "+nodeGroup+", then udevadm trigger")
	case d.who.uid == 0:
		return one(statusOK, "root needs no group", "")
	case slices.Contains(d.who.groups, gid):
		return one(statusOK, fmt.Sprintf("this user is in the group %s (%d)", nodeGroup, gid), "")
	case slices.Contains(members, d.userName()):
		return one(statusWarning, "this user is in the group "+nodeGroup+", and this session began before that", "log in again, or newgrp "+nodeGroup)
	}
	return one(statusWarning, "this user is not in the group "+nodeGroup, "usermod -aG "+nodeGroup+" USER, then log in again")
}

// lookUpGroup reads a group from /etc/group.
func (d *doctor) lookUpGroup(name string) (gid int, members []string, ok bool) {
	for line := range strings.Lines(d.read("/etc/group")) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 4 || f[0] != name {
			continue
		}
		gid, err := strconv.Atoi(f[2])
		return gid, strings.Split(f[3], ","), err == nil
	}
	return 0, nil, false
}

// userName finds this user in /etc/passwd; "" if it is not there.
func (d *doctor) userName() string {
	for line := range strings.Lines(d.read("/etc/passwd")) {
		f := strings.Split(line, ":")
		if len(f) > 2 && f[2] == strconv.Itoa(d.who.uid) {
			return f[0]
		}
	}
	return ""
}

// deviceABI opens each node that this user may open.
func (d *doctor) deviceABI(ctx context.Context) []findingRecord {
	list := d.deviceNodes()
	switch {
	case len(list) == 0:
		return one(statusSkipped, "no device nodes", "")
	case !slices.Contains(d.schemes, "dev"):
		return one(statusSkipped, "this nfctl was built without the back end for device nodes", "")
	}
	var found []findingRecord
	for _, name := range list {
		found = append(found, d.openNode(ctx, name))
	}
	return found
}

func (d *doctor) openNode(ctx context.Context, name string) findingRecord {
	address := "dev:" + strings.TrimPrefix(name, "/dev/nfcomms")
	info, err := d.open(ctx, address)
	switch {
	case errors.Is(err, nfcomms.ErrABI):
		return findingRecord{Status: statusError, Detail: err.Error(),
			Fix: "install nfctl, kernel module and firmware of the same release; nfctl version shows what is there"}
	case errors.Is(err, fs.ErrPermission):
		return findingRecord{Status: statusSkipped, Detail: address + ": this user may not open it, see device-nodes"}
	case err != nil:
		return findingRecord{Status: statusError, Detail: err.Error(), Fix: "look at the kernel's log: dmesg | grep nfcomms; nfctl reset may bring the device back"}
	}
	return findingRecord{Status: statusOK, Detail: fmt.Sprintf("%s: firmware has ABI %d.%d, nfctl %d.%d", address, info.Major, info.Minor, abi.Major, abi.Minor)}
}

// iommu searches for one.
func (d *doctor) iommu(context.Context) []findingRecord {
	groups := len(d.glob("/sys/kernel/iommu_groups/*"))
	switch {
	case groups > 0:
		return one(statusOK, fmt.Sprintf("%d IOMMU groups", groups), "")
	case len(d.deviceNodes()) == 0:
		return one(statusSkipped, "none, and no device node needs one", "")
	}
	return one(statusWarning, "none: a device can read and write all memory of this host",
		"enable it in the firmware setup, and boot with intel_iommu=on or amd_iommu=on")
}

// Least limits that do not get in the way.
const (
	minMemlock = 64 << 20
	minFiles   = 1024
)

// process is one whose limits count: the daemon, else this shell.
type process struct{ name, proc string }

// daemonProcess finds the daemon.
func (d *doctor) daemonProcess() process {
	for _, dir := range d.glob("/proc/[0-9]*") {
		if d.read(dir+"/comm") == "nfcommsd" {
			return process{"nfcommsd, process " + filepath.Base(dir), dir}
		}
	}
	return process{"this shell", "/proc/self"}
}

// limit reads the soft limit in /proc/PID/limits; unlimited is true without one.
func (d *doctor) limit(p process, name string) (value uint64, unlimited bool, err error) {
	s := bufio.NewScanner(strings.NewReader(d.read(p.proc + "/limits")))
	for s.Scan() {
		rest, ok := strings.CutPrefix(s.Text(), name)
		f := strings.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		if f[0] == "unlimited" {
			return 0, true, nil
		}
		value, err := strconv.ParseUint(f[0], 10, 64)
		return value, false, err
	}
	return 0, false, fmt.Errorf("%s/limits does not tell %q", p.proc, strings.ToLower(name))
}

// memlock checks how much memory may be pinned.
func (d *doctor) memlock(context.Context) []findingRecord {
	p := d.daemonProcess()
	value, unlimited, err := d.limit(p, "Max locked memory")
	text := units.Bytes(float64(value))
	switch {
	case err != nil:
		return one(statusWarning, err.Error(), "mount /proc")
	case unlimited:
		return one(statusOK, p.name+": unlimited", "")
	case len(d.deviceNodes()) == 0:
		return one(statusOK, p.name+": "+text+"; no device here pins memory", "")
	case value < minMemlock:
		return one(statusError, fmt.Sprintf("%s may pin %s, at least %s are wanted: transfers fail with \"out of resources\"", p.name, text, units.Bytes(minMemlock)),
			"LimitMEMLOCK=infinity in the unit; for a shell ulimit -l unlimited, or memlock in /etc/security/limits.d")
	}
	return one(statusOK, p.name+": "+text, "")
}

// openFiles checks how many files may be open.
func (d *doctor) openFiles(context.Context) []findingRecord {
	p := d.daemonProcess()
	value, unlimited, err := d.limit(p, "Max open files")
	switch {
	case err != nil:
		return one(statusWarning, err.Error(), "mount /proc")
	case unlimited:
		return one(statusOK, p.name+": unlimited", "")
	case value < minFiles:
		return one(statusWarning, fmt.Sprintf("%s may open %d files, fewer than %d", p.name, value, minFiles), "LimitNOFILE=65536 in the unit; for a shell ulimit -n")
	}
	return one(statusOK, fmt.Sprintf("%s: %d", p.name, value), "")
}

// cgroup returns a file of the daemon's, or this shell's, control group (v2).
func (d *doctor) cgroup(p process, file string) string {
	for line := range strings.Lines(d.read(p.proc + "/cgroup")) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return d.read(filepath.Join("/sys/fs/cgroup", rest, file))
		}
	}
	return ""
}

// processors checks what a waiting call has to spin on.
func (d *doctor) processors(context.Context) []findingRecord {
	p := d.daemonProcess()
	quota, period, _ := strings.Cut(d.cgroup(p, "cpu.max"), " ")
	q, errQ := strconv.ParseFloat(quota, 64)
	t, errT := strconv.ParseFloat(period, 64)
	limited := errQ == nil && errT == nil && t > 0 // "max 100000" is not
	have := float64(runtime.NumCPU())
	switch {
	case limited && q/t < 2:
		return one(statusWarning, fmt.Sprintf("%s: a quota of %.2g processors: calls are stopped in the middle of active waiting", p.name, q/t),
			"CPUQuota=200% or more in the unit, or none; pin with AllowedCPUs instead")
	case have < 2:
		return one(statusWarning, "one processor: each message costs a switch between threads", "give the host a second processor")
	}
	return one(statusOK, fmt.Sprintf("%s: %d processors", p.name, runtime.NumCPU()), "")
}

// memory checks the limit of the control group.
func (d *doctor) memory(context.Context) []findingRecord {
	p := d.daemonProcess()
	limit, err := strconv.ParseUint(d.cgroup(p, "memory.max"), 10, 64)
	if err != nil { // "max", or no control group
		return one(statusOK, p.name+": no limit", "")
	}
	text := p.name + ": limit of " + units.Bytes(float64(limit))
	environ, err := os.ReadFile(d.path(p.proc + "/environ"))
	switch {
	case err != nil:
		return one(statusSkipped, text+"; its environment may not be read", "")
	case !strings.Contains("\x00"+string(environ), "\x00GOMEMLIMIT="):
		return one(statusWarning, text+", of which the Go runtime does not know",
			fmt.Sprintf("Environment=GOMEMLIMIT=%dMiB in the unit", limit/10*9>>20))
	}
	return one(statusOK, text+", GOMEMLIMIT is set", "")
}

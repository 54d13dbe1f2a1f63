package control

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/internal/topology"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// AllDevices is the parent that stands for all devices.
const AllDevices = "devices/-"

// deviceID is the form of a device's own part of its name.
var deviceID = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// CheckDevice returns ErrInvalid unless id can be a device's own part of its
// name.
func CheckDevice(id string) error {
	if !deviceID.MatchString(id) {
		return fmt.Errorf("device name %q: want 1 to 63 of a-z, 0-9, \".\", \"_\" and \"-\", with a letter or digit at both ends: %w", id, nfcomms.ErrInvalid)
	}
	return nil
}

// DeviceName returns the resource name of a device: "devices/nic0".
func DeviceName(device string) string { return "devices/" + device }

// ChannelName returns the resource name of a channel: "devices/nic0/channels/17", at
// another node of its fabric "devices/nic0/channels/2.0.1/17".
func ChannelName(device string, t nfcomms.Target) string {
	return fmt.Sprintf("devices/%s/channels/%v", device, t)
}

// ProgramName returns the resource name of a program, whose own name may hold
// any bytes.
func ProgramName(device, program string) string {
	return fmt.Sprintf("devices/%s/programs/%s", device, url.PathEscape(program))
}

// ProcessName returns the resource name of a device process: "devices/nic0/processes/3", or
// "devices/nic0/processes/2.0.1/3" at a node of the device's fabric. An empty node is the device's own.
func ProcessName(device, node string, id nfcomms.ProcessID) string {
	if node != "" {
		node += "/"
	}
	return fmt.Sprintf("devices/%s/processes/%s%d", device, node, id)
}

// HealthService returns the name of a device in health v1: "device/nic0".
func HealthService(device string) string { return devicePrefix + device }

func eventName(device string, number int64) string {
	return fmt.Sprintf("devices/%s/events/%d", device, number)
}

// parseDevice returns the device of "devices/{device}".
func parseDevice(field, name string) (string, error) {
	id, ok := strings.CutPrefix(name, "devices/")
	if !ok || !deviceID.MatchString(id) {
		return "", malformed(field, name, "devices/{device}")
	}
	return id, nil
}

// parseParent is parseDevice that also takes AllDevices, as "".
func parseParent(field, name string) (string, error) {
	if name == AllDevices {
		return "", nil
	}
	return parseDevice(field, name)
}

// parseUnder returns device and last part of "devices/{device}/{collection}/{last}".
func parseUnder(field, name, collection string) (device, last string, err error) {
	p := strings.Split(name, "/")
	if len(p) != 4 || p[0] != "devices" || !deviceID.MatchString(p[1]) || p[2] != collection || p[3] == "" {
		return "", "", malformed(field, name, fmt.Sprintf("devices/{device}/%s/{…}", collection))
	}
	return p[1], p[3], nil
}

// parseChannel returns device and target of a channel's name.
func parseChannel(field, name string) (string, nfcomms.Target, error) {
	device, last, _ := strings.Cut(strings.TrimPrefix(name, "devices/"), "/channels/")
	t, err := topology.ParseTarget(last)
	if err != nil || !deviceID.MatchString(device) || ChannelName(device, nfcomms.Target(t)) != name {
		return "", 0, malformed(field, name, "devices/{device}/channels/{number below 2^24, or x.y.z/number}")
	}
	return device, nfcomms.Target(t), nil
}

// parseProcess returns device, node and process of a process's name.
func parseProcess(field, name string) (device, node string, id nfcomms.ProcessID, err error) {
	device, last, _ := strings.Cut(strings.TrimPrefix(name, "devices/"), "/processes/")
	if place, number, there := strings.Cut(last, "/"); there {
		node, last = place, number
		_, err = topology.ParseNode(node)
	}
	n, bad := parseNumber(last)
	id = nfcomms.ProcessID(n)
	if err != nil || bad != nil || !deviceID.MatchString(device) || ProcessName(device, node, id) != name {
		return "", "", 0, malformed(field, name, "devices/{device}/processes/{number, or x.y.z/number}")
	}
	return device, node, id, nil
}

// parseProgram returns device and program of a program's name.
func parseProgram(field, name string) (device, program string, err error) {
	device, last, err := parseUnder(field, name, "programs")
	if err != nil {
		return "", "", err
	}
	program, err = url.PathUnescape(last)
	if err != nil {
		return "", "", malformed(field, name, "devices/{device}/programs/{program}")
	}
	return device, program, nil
}

// parseNumber reads a number in the one form that a name has for it.
func parseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err == nil && strconv.FormatUint(n, 10) != s {
		err = strconv.ErrSyntax
	}
	return n, err
}

func malformed(field, name, form string) error {
	return invalid(field, "%q is not %q", name, form)
}

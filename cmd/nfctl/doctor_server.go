package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control/access"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// serverView is what doctor learnt from the server's first answer.
type serverView struct {
	role string
}

// socket checks the file of the daemon's socket.
func (d *doctor) socket(ctx context.Context) []findingRecord {
	if !isUnix(d.address) {
		return one(statusSkipped, "the server has no socket", "")
	}
	path := unixPath(d.address)
	st, err := os.Stat(d.path(path))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !d.explicit:
		return one(statusWarning, path+" is not there: no daemon runs", "systemctl enable --now nfcommsd.socket, or start nfcommsd; --address names another server")
	case errors.Is(err, fs.ErrNotExist):
		return one(statusError, path+" is not there", "start nfcommsd, or mend --address")
	case errors.Is(err, fs.ErrPermission):
		return one(statusError, path+": this user may not look into its folder", letIn(d.path(path), "USER"))
	case err != nil:
		return one(statusError, err.Error(), "mend --address")
	case st.Mode().Type() != fs.ModeSocket:
		return one(statusError, path+" is not a socket", "remove it and start nfcommsd anew, or mend --address")
	}
	o := ownerOf(st)
	text := fmt.Sprintf("%s has mode %04o, user %d, group %d", path, st.Mode().Perm(), o.uid, o.gid)
	if !d.may(st, 0o2) {
		return one(statusError, text+": this user may not open it", letIn(d.path(path), "USER"))
	}
	err = probeUnix(ctx, d.path(path), d.trusts)
	if untrusted := (*untrustedError)(nil); errors.As(err, &untrusted) {
		return one(statusError, err.Error(), "ask who made the socket; the daemon's own folder is /run/nfcomms")
	}
	if err != nil {
		return one(statusError, fmt.Sprintf("%s: %v: the daemon that made it has ended", text, err), "start nfcommsd")
	}
	return one(statusOK, text, "")
}

// server asks for the versions.
func (d *doctor) server(ctx context.Context) []findingRecord {
	if d.client == nil {
		return one(statusSkipped, "the device of --device does not open", "")
	}
	var header metadata.MD
	v, err := d.client.Versions.GetVersion(ctx, &nfcommsv1.GetVersionRequest{}, grpc.Header(&header))
	if role := header.Get(access.RoleHeader); len(role) > 0 {
		d.seen.role = role[0]
	}
	if refused := (*refusedError)(nil); d.explain != nil && errors.As(d.explain(ctx, err), &refused) {
		return one(statusError, refused.Error(), "a certificate of an authority in tcp.client_ca that has neither expired nor been revoked")
	}
	switch code := exitCode(ctx, err); {
	case err == nil:
	case code == exitUnreachable && !d.explicit:
		return one(statusWarning, "no server at "+d.address, "see socket")
	case code == exitDenied:
		d.reached = true
		return one(statusError, err.Error(), "an administrator gives roles to users and groups in the daemon's configuration")
	case code == exitUnreachable:
		return one(statusError, "no server at "+d.address+": "+err.Error(), "see socket; the daemon's log: journalctl -u nfcommsd")
	default:
		return one(statusError, err.Error(), "see the daemon's log: journalctl -u nfcommsd")
	}
	d.reached = true
	text := fmt.Sprintf("version %s, device ABI %d.%d", v.GetVersion(), v.GetAbiMajor(), v.GetAbiMinor())
	if v.GetAbiMajor() != abi.Major {
		return one(statusWarning, fmt.Sprintf("%s; nfctl has %d.%d", text, abi.Major, abi.Minor), "install nfctl and nfcommsd of the same release")
	}
	return one(statusOK, text, "")
}

// role returns what this user may do.
func (d *doctor) role(context.Context) []findingRecord {
	switch {
	case !d.reached:
		return one(statusSkipped, "no server answered", "")
	case d.seen.role == "":
		return one(statusSkipped, "the server has no roles: everybody who may connect may do everything", "")
	}
	return one(statusOK, "this user is "+d.seen.role, "")
}

// devices checks the states of the server's devices.
func (d *doctor) devices(ctx context.Context) []findingRecord {
	if d.unopened != nil {
		return one(statusError, d.unopened.Error(), "do what the message says, or name another device")
	}
	if !d.reached {
		return one(statusSkipped, "no server answered", "")
	}
	list, err := collect(d.client.ListDevices(ctx))
	if err != nil {
		return one(statusError, err.Error(), "see the daemon's log: journalctl -u nfcommsd")
	}
	if len(list) == 0 {
		return one(statusWarning, "the server has no devices", "name some in the daemon's configuration")
	}
	var found []findingRecord
	for _, x := range list {
		r := deviceOf(x)
		f := findingRecord{Status: statusOK, Detail: r.Device + " is " + r.State}
		switch {
		case r.State == "failed" && r.Driver == "": // it never opened
			f.Status, f.Detail = statusError, f.Detail+": "+failureText(r.Failure)
			f.Fix = "do what the message says, or mend its address in the configuration; the server tries again by itself"
		case r.State == "failed":
			f.Status, f.Detail = statusError, f.Detail+": "+failureText(r.Failure)
			f.Fix = "nfctl reset " + r.Device + "; nfctl events " + r.Device + " says what preceded it"
		case r.State == "ready":
		default:
			f.Status, f.Fix = statusWarning, "nfctl info "+r.Device+" says more"
		}
		found = append(found, f)
	}
	return found
}

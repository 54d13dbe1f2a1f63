//go:build cgo

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// listenShared returns the socket that systemd handed over, or makes it. One that is there
// already and that nobody serves is replaced; what belongs to another user is left alone.
// It becomes a user's if one is given.
func listenShared(path string, mode fs.FileMode, as *identity) (*net.UnixListener, error) {
	given, err := handedOver(path)
	if err != nil || given != nil {
		return given, err
	}
	if st, err := os.Lstat(path); err == nil {
		owner, ok := st.Sys().(*syscall.Stat_t)
		if ok && int(owner.Uid) != os.Geteuid() && (as == nil || int(owner.Uid) != as.uid) {
			return nil, fmt.Errorf("%s belongs to another user (uid %d): %w", path, owner.Uid, fs.ErrPermission)
		}
	}
	l, err := listenOn(shmwire.Network, path)
	if err != nil {
		return nil, err
	}
	if as != nil {
		err = os.Lchown(path, as.uid, as.gid)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// handedOver returns the socket of a socket unit, nil if there is none.
func handedOver(path string) (*net.UnixListener, error) {
	all, err := activation.Listeners()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	l, ok := all[0].(*net.UnixListener)
	if ok && len(all) == 1 && l.Addr().Network() == shmwire.Network && l.Addr().String() == path {
		return l, nil
	}
	var found []string
	for _, l := range all {
		if l != nil {
			found = append(found, l.Addr().Network()+" "+l.Addr().String())
			_ = l.Close()
		}
	}
	return nil, usagef("systemd handed over %q: the socket unit must have ListenSequentialPacket=%s and no other", found, path)
}

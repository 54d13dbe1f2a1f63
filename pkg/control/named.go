package control

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// namedError is an error of a device's call whose text has the name that the
// server gave the device in place of its address, which several may share.
type namedError struct {
	error
	text string
}

// Error returns the text with the name.
func (e *namedError) Error() string { return e.text }

// Unwrap returns the error as it was.
func (e *namedError) Unwrap() error { return e.error }

// nameDevice gives the text of an error the name of the device that a request is
// about.
func nameDevice(req any, err error) error {
	var op *nfcomms.OpError
	if !errors.As(err, &op) || op.Device == "" {
		return err
	}
	resource := ""
	switch r := req.(type) {
	case interface{ GetName() string }:
		resource = r.GetName()
	case interface{ GetParent() string }:
		resource = r.GetParent()
	}
	id, ok := strings.CutPrefix(resource, "devices/")
	if !ok {
		return err
	}
	named := *op
	named.Device, _, _ = strings.Cut(id, "/")
	return &namedError{err, strings.Replace(err.Error(), op.Error(), named.Error(), 1)}
}

// noProcess says of a process that the device does not know that it is not there.
func noProcess(err error, name string) error {
	var op *nfcomms.OpError
	if !errors.As(err, &op) || !errors.Is(err, nfcomms.ErrInvalid) {
		return err
	}
	_, process, _ := strings.Cut(name, "/processes/")
	return &nfcomms.OpError{Op: op.Op, Device: op.Device, Err: fmt.Errorf("process %s: %w", process, ErrNoProcess)}
}

package control

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Keys of ErrorInfo.metadata.
const (
	keyOp          = "op"         // what was tried, of an OpError
	keyAddress     = "address"    // the device's address, of an OpError
	keyTarget      = "target"     // the far end, of an OpError
	keyCause       = "cause"      // of a WithdrawnError: "canceled" or "deadline"
	keyHost        = "host_bytes" // of a SizeError
	keyDevice      = "device_bytes"
	keyProcessed   = "processed_bytes" // of a TransferError
	keyOutstanding = "outstanding_bytes"
	keyList        = "list"
	keyEntry       = "entry"
)

// toStatus returns an error as the gRPC status that keeps its meaning. It has the code of the
// status table, an ErrorInfo with reason and details, and a BadRequest that names the field of a
// FieldError. A status stays as it is, nil stays nil.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	m := meaningOf(err)
	st := status.New(m.code, text(err.Error()))
	var details []protoadapt.MessageV1
	if m.reason != "" {
		info := &errdetails.ErrorInfo{Reason: m.reason, Domain: Domain, Metadata: metadataOf(err)}
		details = append(details, protoadapt.MessageV1Of(info))
	}
	var field *FieldError
	if errors.As(err, &field) {
		violation := &errdetails.BadRequest_FieldViolation{Field: field.Field, Description: text(field.Err.Error()), Reason: m.reason}
		details = append(details, protoadapt.MessageV1Of(&errdetails.BadRequest{
			FieldViolations: []*errdetails.BadRequest_FieldViolation{violation},
		}))
	}
	if with, err := st.WithDetails(details...); err == nil {
		st = with // only a status OK has none
	}
	return st.Err()
}

// text makes a message fit for a protocol buffer.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// metadataOf returns the details of an error as text.
func metadataOf(err error) map[string]string {
	m := make(map[string]string)
	number := func(key string, n uint64) { m[key] = strconv.FormatUint(n, 10) }
	var op *nfcomms.OpError
	if errors.As(err, &op) {
		m[keyOp], m[keyAddress] = op.Op, text(op.Device)
		number(keyTarget, uint64(op.Target))
	}
	var withdrawn *nfcomms.WithdrawnError
	if errors.As(err, &withdrawn) {
		m[keyCause] = "canceled"
		if withdrawn.Timeout() {
			m[keyCause] = "deadline"
		}
	}
	var size *nfcomms.SizeError
	if errors.As(err, &size) {
		number(keyHost, size.Host)
		number(keyDevice, size.Device)
	}
	var transfer *nfcomms.TransferError
	if errors.As(err, &transfer) {
		number(keyProcessed, transfer.Processed)
		number(keyOutstanding, transfer.Outstanding)
		number(keyList, uint64(transfer.List))
		number(keyEntry, uint64(transfer.Entry))
	}
	return m
}

// Error is what a client returns for a call that failed. errors.Is finds the
// sentinel it was made from, and errors.As finds the *nfcomms.OpError,
// *nfcomms.SizeError, *nfcomms.TransferError, *nfcomms.WithdrawnError and
// *FieldError that was sent with it.
type Error struct {
	// Reason is the reason of the status table: "SIZE_MISMATCH". It is empty
	// if the error is not the server's: no connection, a deadline. One that this
	// client does not know, as those of package access, stays as it arrived; then
	// errors.Is finds what the gRPC code stands for.
	Reason string
	// Metadata is what ErrorInfo holds beside the reason.
	Metadata map[string]string

	status *status.Status
	parts  []error
}

// Error returns the server's text.
func (e *Error) Error() string { return e.status.Message() }

// Unwrap returns the sentinel and the details.
func (e *Error) Unwrap() []error { return e.parts }

// GRPCStatus returns the status that arrived.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Timeout reports whether time ran out, as package net does.
func (e *Error) Timeout() bool {
	return errors.Is(e, context.DeadlineExceeded) || errors.Is(e, nfcomms.ErrTargetTimeout)
}

// fromStatus returns the error of a gRPC call as an *Error. An error that is no
// status, such as io.EOF, stays as it is.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*Error); ok {
		return err
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	e := &Error{status: st}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.Domain == Domain {
				e.Reason, e.Metadata = d.Reason, d.Metadata
			}
		case *errdetails.BadRequest:
			for _, v := range d.FieldViolations {
				e.parts = append(e.parts, &FieldError{Field: v.Field, Err: errors.New(v.Description)})
			}
		}
	}
	switch {
	case sentinels[e.Reason] != nil:
		e.parts = append(e.parts, e.details(sentinels[e.Reason]))
	case e.Reason == "" || st.Code() != codes.Unavailable: // who gave a reason was there
		e.parts = append(e.parts, standard(st.Code())...)
	}
	return e
}

// standard returns what a status stands for whose reason says no more.
func standard(c codes.Code) []error {
	switch c {
	case codes.Canceled:
		return []error{context.Canceled}
	case codes.DeadlineExceeded:
		return []error{context.DeadlineExceeded}
	case codes.Unavailable:
		return []error{ErrUnavailable}
	case codes.PermissionDenied, codes.Unauthenticated:
		return []error{fs.ErrPermission}
	case codes.Unimplemented:
		return []error{errors.ErrUnsupported}
	}
	return nil
}

// details rebuilds the error that toStatus took apart, around its sentinel.
func (e *Error) details(err error) error {
	number := func(key string) uint64 {
		n, _ := strconv.ParseUint(e.Metadata[key], 10, 64)
		return n
	}
	if cause, ok := e.Metadata[keyCause]; ok && err == nfcomms.ErrWithdrawn {
		ended := context.Canceled
		if cause == "deadline" {
			ended = context.DeadlineExceeded
		}
		err = &nfcomms.WithdrawnError{Cause: ended}
	}
	if _, ok := e.Metadata[keyHost]; ok && err == nfcomms.ErrSizeMismatch {
		err = &nfcomms.SizeError{Host: number(keyHost), Device: number(keyDevice)}
	}
	if _, ok := e.Metadata[keyProcessed]; ok {
		err = &nfcomms.TransferError{
			Processed: number(keyProcessed), Outstanding: number(keyOutstanding),
			List: uint32(number(keyList)), Entry: uint32(number(keyEntry)), Err: err,
		}
	}
	if op, ok := e.Metadata[keyOp]; ok {
		err = &nfcomms.OpError{Op: op, Device: e.Metadata[keyAddress], Target: nfcomms.Target(number(keyTarget)), Err: err}
	}
	return err
}

package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// The header is one message: four bytes that name it, the version, the ids of trace and span, and the
// flags. Ids of zeros are those of no span.
const (
	headerMagic   = "NFCt"
	headerVersion = 0
	headerSize    = len(headerMagic) + 1 + 16 + 8 + 1
)

// ErrNoHeader is the error of ReceiveContext for a message that is no header.
var ErrNoHeader = errors.New("telemetry: the message is no header")

// SendContext sends the span of ctx as a message of 30 bytes, for a peer that calls ReceiveContext at
// this point of their conversation. Without a span in ctx, the header says so. Trace state and baggage
// stay here. Its errors are those of Channel.Send.
func SendContext(ctx context.Context, ch *nfcomms.Channel) error {
	return ch.Send(ctx, header(trace.SpanContextFromContext(ctx)))
}

// header encodes a span.
func header(span trace.SpanContext) []byte {
	b := append(make([]byte, 0, headerSize), headerMagic...)
	b = append(b, headerVersion)
	trace, id := span.TraceID(), span.SpanID()
	b = append(b, trace[:]...)
	b = append(b, id[:]...)
	return append(b, byte(span.TraceFlags()))
}

// ReceiveContext receives a header, and returns ctx with the peer's span in it: a span that starts
// from that is its child, and trace.LinkFromContext makes a link. If the peer had no span, it
// returns ctx as it is. ErrNoHeader if the message is something else, which is lost; other errors are
// those of Channel.Receive. The peer may claim any span, also of others.
func ReceiveContext(ctx context.Context, ch *nfcomms.Channel) (context.Context, error) {
	var b [nfcomms.MessageSize]byte
	n, err := ch.Receive(ctx, b[:])
	if err != nil {
		return ctx, err
	}
	span, err := parseHeader(b[:n])
	if err != nil || !span.IsValid() {
		return ctx, err
	}
	return trace.ContextWithRemoteSpanContext(ctx, span), nil
}

// parseHeader decodes a span. A later version may be longer, and begins with the same bytes.
func parseHeader(b []byte) (trace.SpanContext, error) {
	at := len(headerMagic)
	if len(b) < headerSize || string(b[:at]) != headerMagic || b[at] == headerVersion && len(b) != headerSize {
		return trace.SpanContext{}, fmt.Errorf("%w: %d bytes", ErrNoHeader, len(b))
	}
	c := trace.SpanContextConfig{TraceFlags: trace.TraceFlags(b[headerSize-1]) & trace.FlagsSampled}
	copy(c.TraceID[:], b[at+1:])
	copy(c.SpanID[:], b[at+1+16:])
	return trace.NewSpanContext(c), nil
}

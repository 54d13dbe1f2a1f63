//go:build cgo

package telemetry_test

import (
	"context"
	"fmt"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/telemetry"
)

func Example() {
	ctx := context.Background()
	kept := tracetest.NewInMemoryExporter() // otlptracegrpc.New(ctx) in its place sends to a collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))

	dev, err := nfcomms.Open(ctx, "sim:")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	calls, err := telemetry.Start(ctx, dev, telemetry.Options{Name: "nic0", Every: 1, Provider: provider})
	if err != nil {
		log.Fatal(err)
	}
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	if err != nil {
		log.Fatal(err)
	}

	request, span := provider.Tracer("example").Start(ctx, "request")
	answer := make([]byte, nfcomms.MessageSize)
	if err := ch.Send(request, []byte("hello")); err != nil {
		log.Fatal(err)
	}
	if _, err := ch.Receive(request, answer); err != nil {
		log.Fatal(err)
	}
	span.End()

	calls.Close() // hands over what is left
	for _, s := range kept.GetSpans() {
		fmt.Println(s.Name, s.Parent.SpanID() == span.SpanContext().SpanID())
	}
	// Output:
	// request false
	// nfcomms send true
	// nfcomms receive true
}

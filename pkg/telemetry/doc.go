// Package telemetry puts the calls of a device into the traces of OpenTelemetry. Each call that is
// sampled has a span below that of its caller, with the layers that it passed as events.
//
//	t, err := telemetry.Start(ctx, dev, telemetry.Options{Name: "nic0"})
//	…
//	defer t.Close()
//
// It is a module of its own. A program that does not import it links nothing of OpenTelemetry, and its
// calls pay nothing.
package telemetry

// Package telemetry tests what programs export, with the collector of OpenTelemetry built from its
// modules.
package telemetry

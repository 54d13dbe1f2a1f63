// Package meter counts and measures calls for back ends: it fills a
// bridge.PathStats and a bridge.Profile, the same way everywhere, with atomic
// counters and without allocating.
package meter

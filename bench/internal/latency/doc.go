// Package latency is the latency test of the NFComms paper.
package latency

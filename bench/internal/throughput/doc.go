// Package throughput is the throughput test of the NFComms paper.
package throughput

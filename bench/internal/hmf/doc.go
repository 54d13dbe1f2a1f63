// Package hmf has the tests of the HMF Transmitter report: packets from process to process through a ring.
package hmf

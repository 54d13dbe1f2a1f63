// Package bridgetest is the conformance suite that every back end is tested with.
package bridgetest

//go:build cgo

package nfcomms_test

import (
	"testing"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// TestBeside: every method may be called beside every other one.
func TestBeside(t *testing.T) { beside.Device(t, "sim:?beat=10ms", 150, "Fabric") }

// TestBesideOfANode: the same of a node of a fabric.
func TestBesideOfANode(t *testing.T) { beside.Device(t, "sim:?torus=2x1x1", 100) }

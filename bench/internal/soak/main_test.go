//go:build linux

package soak

import (
	"testing"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

func TestMain(m *testing.M) { clitest.MainOf(m, New) }

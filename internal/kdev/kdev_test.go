package kdev

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake opens a device of a fake module; nil without the C compiler that its
// firmware needs.
var fake func(t *testing.T, options string) bridge.Device

// devices are the addresses to test, without options; none where there is no
// module.
var devices = flag.String("kdev", os.Getenv("NFC_KDEV"), "test these devices, such as dev:0,dev:1 (default $NFC_KDEV)")

// openVerified opens devices whose slots are verified, more than so many of a real one: such, or those of a
// fake module.
func openVerified(t *testing.T, slots int) bridgetest.OpenFunc {
	if *devices != "" {
		traced(t, slots)
	}
	return opener(t)
}

// opener opens real devices, or those of a fake module.
func opener(t *testing.T) bridgetest.OpenFunc {
	t.Helper()
	if *devices != "" {
		return bridgetest.Pool(strings.Split(*devices, ","))
	}
	require.NotNil(t, fake, "build with CGO_ENABLED=1, or name devices with -kdev")
	return fake
}

// TestConformance runs every rule of the contract.
func TestConformance(t *testing.T) { bridgetest.Run(t, openVerified(t, 1000)) }

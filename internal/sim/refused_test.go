//go:build cgo

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// refusals are macros of testdata/refused.c, and why the device refuses the image.
var refusals = map[string]string{
	"MISSPELLED":  "needs chanel_read",
	"EXIT":        "needs exit",
	"AT_EXIT":     "needs __cxa_atexit",
	"CONSTRUCTOR": "has a constructor or destructor",
	"DESTRUCTOR":  "has a constructor or destructor",
	"PICKED":      "runs code as it is linked",
	"NO_TABLE":    "has no sound NFC_PROGRAMS",
	"WILD_NAME":   "has no sound NFC_PROGRAMS",
	"WILD_MAIN":   "has no sound NFC_PROGRAMS",
}

// TestRefusedImages: an image that would end the process of its host, as it is loaded, as it
// runs or as it goes, is refused; the error and the log name the symbol or the reason.
func TestRefusedImages(t *testing.T) {
	ctx := within(t)
	dev, log := openLogged(t, "")
	images := mapped(t)
	for macro, why := range refusals {
		image := build(t, "refused.c", macro)
		for range 3 {
			_, err := dev.Load(ctx, image)
			require.ErrorIs(t, err, bridge.ErrInvalid, macro)
			var refused *bridge.ImageError
			require.ErrorAs(t, err, &refused, macro)
			require.Equal(t, why, refused.Why, macro)
		}
		untilLogged(t, log, "load: the image "+why)
	}
	require.Equal(t, images, mapped(t))
	name := load(ctx, t, dev, build(t, "refused.c", "NONE"))
	p, err := dev.Start(ctx, bridge.Program{Name: name, Targets: 1})
	require.NoError(t, err)
	require.NoError(t, dev.Stop(ctx, p.ID))
	require.NoError(t, dev.Reset(ctx))
	require.NoError(t, dev.Close())
}

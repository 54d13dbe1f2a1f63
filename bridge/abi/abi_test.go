package abi

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestDiagnosticReadings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Diagnostic
		worst := Normal
		want := map[uint]Level{}
		for shift := uint(DiagServiceNetwork); shift <= DiagXPlus; shift += 2 {
			l := Level(rapid.IntRange(0, 2).Draw(t, "level"))
			want[shift], worst = l, max(worst, l)
			d |= Diagnostic(l) << shift
		}
		valid := rapid.Bool().Draw(t, "valid")
		if valid {
			d |= 1 << diagValid
		}
		for shift, l := range want {
			assert.Equal(t, l, d.Reading(shift))
		}
		assert.Equal(t, worst, d.Worst())
		assert.Equal(t, valid, d.Valid())
	})
}

func TestDirectionString(t *testing.T) {
	assert.Equal(t, "h2d", H2D.String())
	assert.Equal(t, "d2h", D2H.String())
}

// TestStatusString: a status without a name is its number, the first as well.
func TestStatusString(t *testing.T) {
	assert.Equal(t, "OK", OK.String())
	assert.Equal(t, strconv.Itoa(int(StatusCount)), StatusCount.String())
}

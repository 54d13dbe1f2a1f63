package topology

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

func TestTargets(t *testing.T) {
	for text, want := range map[string]Target{
		"0": 0, "16": 0x10, "16777215": 0xffffff, "0.0.0/16": 0x8000000000000010,
		"2.0.1/1042": 0x8002000100000412, "255.255.255/16777215": 0x80ffffff00ffffff,
	} {
		got, err := ParseTarget(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, bad := range []string{"", "-1", "+1", "01", " 1", "1 ", "0x10", "16777216", "1.2.3", "1.2/3", "1.2.3.4/5",
		"1.2.256/5", "1.2.03/5", "1.2.3/", "1.2.3/016", "1.2.3/16777216", "/5", "1.2.3/4/5", "a.b.c/1", "1.-2.3/4"} {
		_, err := ParseTarget(bad)
		require.ErrorIs(t, err, ErrSyntax, "%q", bad)
	}
}

func TestTori(t *testing.T) {
	for _, good := range []string{"2x1x1", "4x4x1", "32x32x32", "1x1x2"} {
		torus, err := ParseTorus(good)
		require.NoError(t, err)
		require.Equal(t, good, torus.String())
	}
	for text, want := range map[string]error{
		"1x1x1": ErrTorus, "33x1x1": ErrTorus, "32x32x33": ErrTorus, "0x4x4": ErrTorus, "33000x1x1": ErrTorus,
		"4x4": ErrSyntax, "4": ErrSyntax, "4x4x4x4": ErrSyntax, "04x4x4": ErrSyntax, "4X4X4": ErrSyntax, "": ErrSyntax,
		"99999999999x1x1": ErrSyntax, "-1x4x4": ErrSyntax,
	} {
		_, err := ParseTorus(text)
		require.ErrorIs(t, err, want, "%q", text)
	}
}

// TestNeighbours: there and back again is where one was, as the firmware has it.
func TestNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		torus := Torus{rapid.IntRange(1, 9).Draw(t, "x"), rapid.IntRange(1, 9).Draw(t, "y"), rapid.IntRange(2, 9).Draw(t, "z")}
		n := torus.Node(rapid.IntRange(0, torus.Nodes()-1).Draw(t, "node"))
		require.True(t, torus.Contains(n))
		require.Equal(t, n, torus.Node(torus.Index(n)))
		for l := range Links {
			to := torus.Neighbour(n, l)
			require.True(t, torus.Contains(to))
			require.Equal(t, n, torus.Neighbour(to, l.opposite()))
		}
	})
	require.Equal(t, abi.MakeNode(0, 3, 2), Torus{4, 4, 4}.Neighbour(abi.MakeNode(3, 3, 2), XPlus))
	require.Equal(t, abi.MakeNode(3, 3, 3), Torus{4, 4, 4}.Neighbour(abi.MakeNode(3, 3, 0), ZMinus))
}

func TestLinks(t *testing.T) {
	for l := range Links {
		got, err := ParseLink(l.String())
		require.NoError(t, err)
		require.Equal(t, l, got)
	}
	require.EqualValues(t, abi.DiagXPlus, XPlus.shift())
	require.EqualValues(t, abi.DiagYMinus, YMinus.shift())
	require.EqualValues(t, abi.DiagZMinus, ZMinus.shift())
	for _, bad := range []string{"", "x", "w+", "x++", "X+"} {
		_, err := ParseLink(bad)
		require.ErrorIs(t, err, ErrSyntax)
	}
	require.Equal(t, "link 9", Link(9).String())
}

// FuzzParseTarget: what is read has exactly that text, and valid bits.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"16", "2.0.1/1042", "255.255.255/16777215", "1.2.3/", "007", "0.0.0/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTarget(s)
		if err != nil {
			require.ErrorIs(t, err, ErrSyntax)
			return
		}
		require.True(t, got.Valid())
		require.Equal(t, s, got.String())
	})
}

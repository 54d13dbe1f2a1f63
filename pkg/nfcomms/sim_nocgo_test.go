//go:build !cgo

package nfcomms

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSimNeedsCgo(t *testing.T) {
	dev, err := Open(background(t), "sim:")
	require.Nil(t, dev)
	require.ErrorIs(t, err, ErrNotSupported)
}

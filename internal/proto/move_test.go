package proto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// TestMovesAreUnambiguous: no two transitions fit one input.
func TestMovesAreUnambiguous(t *testing.T) {
	rows := proto.MoveRows()
	_, err := proto.NewMoves(append(rows, rows[3]))
	require.ErrorContains(t, err, "two transitions: "+rows[3].String())
}

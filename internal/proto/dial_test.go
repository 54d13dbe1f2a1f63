package proto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// TestDialsAreUnambiguous: no two transitions fit one input.
func TestDialsAreUnambiguous(t *testing.T) {
	rows := proto.DialRows()
	_, err := proto.NewDial(append(rows, rows[3]))
	require.ErrorContains(t, err, "two transitions: "+rows[3].String())
}

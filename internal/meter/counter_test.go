package meter

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nfcomms/nfcomms/bridge"
)

func TestCounter(t *testing.T) {
	var path Path
	c := Counter{Path: &path}
	c.Note(7, nil, 0)
	c.Note(5, nil, Now())
	c.Note(3, bridge.ErrClosed, Now())
	assert.Equal(t, bridge.PathStats{Messages: 2, Bytes: 12, Errors: 1}, c.Stats())

	var p bridge.PathProfile
	path.AddTo(&p)
	assert.EqualValues(t, 5, p.Bytes, "what began at no time is not measured")
	closed, _ := bridge.StatusOf(bridge.ErrClosed)
	assert.EqualValues(t, 1, p.Errors[closed])
}

package bridgetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStutterIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"subscribe sim: target 5: subscribe target 5: no such target": "subscribe target 5",
		"send sim: target 5: target 5: closed":                        "target 5",
		"reset sim: reset: device lost":                               "reset",
		"load: load image of 5 bytes: invalid argument":               "load image of 5 bytes",
		"send sim: target 5: closed: closed":                          "closed",
		"send sim: target 5: closed":                                  "",
	} {
		assert.Equal(t, want, Stutter(text), text)
	}
}

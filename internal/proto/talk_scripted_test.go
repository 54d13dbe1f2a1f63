package proto_test

import (
	"testing"

	"github.com/nfcomms/nfcomms/internal/proto/talk"
	"github.com/nfcomms/nfcomms/internal/scripted"
)

func init() {
	devices = append(devices, party[talk.Device]{"scripted", func(*testing.T) talk.Device { return &scripted.Party{} }})
}

package proto_test

import (
	"testing"

	"github.com/nfcomms/nfcomms/bridge/proto/talk"
	"github.com/nfcomms/nfcomms/bridge/scripted"
)

func init() {
	devices = append(devices, party[talk.Device]{"scripted", func(*testing.T) talk.Device { return &scripted.Party{} }})
}

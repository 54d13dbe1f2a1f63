package search

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

func jointBroken() []Broken {
	return []Broken{
		{Name: "an island that clears the word after it polled", Defines: []string{"LATE"}},
		{
			Name:   "a read that answers nothing",
			Device: device(abi.H2D, proto.DeviceMessage, proto.Take, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }),
		},
		{
			Name:   "a close that does not wake the writer",
			Device: device(abi.D2H, proto.DeviceMessage, proto.HearClose, func(r *proto.DeviceRow) { r.Return = proto.Stays }),
		},
		{
			Name:   "a withdrawn message that is read all the same",
			Device: device(abi.H2D, proto.DeviceMessage, proto.HearWithdraw, func(r *proto.DeviceRow) { r.Next = proto.DeviceMessage }),
		},
		{Name: "rings that keep slots of the connection before", Defines: []string{"KEEPS", "TIMES=2"}},
	}
}

func farJointBroken() []Broken {
	return []Broken{
		{Name: "a process that gives up and does not tell the node of the port", Defines: []string{"SILENT"}},
		{Name: "a node that does not notice that the other is lost", Defines: []string{"DEAF"}},
		{Name: "a port that stays at its joint until a recall is served", Defines: []string{"STAYS", "TIMES=2"}},
	}
}

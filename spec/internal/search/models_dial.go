package search

import "github.com/nfcomms/nfcomms/internal/proto"

// silent has an end send nothing.
func silent(r *proto.DialRow) { r.Sends = proto.DialSilent }

func guestsBroken() []Broken {
	return []Broken{
		{
			Name: "a process that ends and keeps its place",
			Dial: dial(proto.DialTarget, proto.DialWaiting, proto.DialOtherGone, func(r *proto.DialRow) { r.Next = proto.DialWaiting }),
		},
		{
			Name: "a host that opens what is over, and is not told",
			Dial: dial(proto.DialTarget, proto.DialTakenLeft, proto.DialOpens, func(r *proto.DialRow) { r.Next = proto.DialOpen }),
		},
		{
			Name: "a listener that is stopped and refuses nobody",
			Dial: dial(proto.DialTarget, proto.DialOffered, proto.DialStops, silent),
		},
		{Name: "a place that is used again before the last event", Defines: []string{"EARLY", "TIMES=2"}},
	}
}

func farGuestsBroken() []Broken {
	return []Broken{
		{
			Name: "a process that waits for a host that does not connect",
			Dial: dial(proto.DialTarget, proto.DialTaken, proto.DialLate, silent),
		},
		{
			Name: "a process that does not notice that the other node is lost",
			Dial: dial(proto.DialCaller, proto.DialWaiting, proto.DialNodeLost, func(r *proto.DialRow) { r.Next = proto.DialWaiting }),
		},
		{
			Name: "a queue that keeps a process of a node that is lost",
			Dial: dial(proto.DialTarget, proto.DialWaiting, proto.DialNodeLost, func(r *proto.DialRow) { r.Next = proto.DialWaiting }),
		},
		{
			Name: "a process that closes and does not tell the node of the listener",
			Dial: dial(proto.DialCaller, proto.DialWaiting, proto.DialCloses, silent),
		},
	}
}

func farPortsBroken() []Broken {
	return []Broken{
		{
			Name: "a process that gives up and does not tell the node of the port",
			Dial: dial(proto.DialCaller, proto.DialAsking, proto.DialLate, silent),
		},
		{
			Name: "a port that stays with a process of a node that is lost",
			Dial: dial(proto.DialTarget, proto.DialOpen, proto.DialNodeLost, func(r *proto.DialRow) { r.Next = proto.DialOpen }),
		},
		{
			Name: "a port that is closed and does not tell the process that connected",
			Dial: dial(proto.DialTarget, proto.DialOpen, proto.DialCloses, silent),
		},
	}
}

package firmware

import (
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// wordSize is what a link carries at once, in bytes.
const wordSize = 16

// MeshLinks is how many links a node has, in the order x+, x-, y+, y-, z+, z-.
const MeshLinks = 6

// MeshLinkVersion is that of links: both ends have to be of one.
const MeshLinkVersion = 3

// Limits of a mesh.
const (
	MeshSideMax  = 32   // nodes a side
	MeshNodesMax = 1024 // in all, those of other processes included
)

// MeshTestWords is how many words a burst of Mesh.Test has.
const MeshTestWords = 256

// MeshConfig is the shape of a mesh. Zero fields take the firmware's defaults.
type MeshConfig struct {
	Side    [3]int // nodes in x, y and z
	Here    []bool // nodes of this process; nil: all
	Threads int    // 0: time passes with Step alone
	Spin    time.Duration
	Whole   bool // payloads are checked word by word, not their first alone

	Ask time.Duration // a put or get without an answer is sent again; 0: 10 ms

	Classic                       bool // flow control of the report
	Depth, Buffer, Period, Window int  // words
	Wait, CreditIdle              time.Duration
	Beat, Retry, Silence          time.Duration
	HostTimeout                   time.Duration // 0: hosts are not watched

	WireWords, Slack int
	WordPS           uint64 // picoseconds that a word takes on a wire; 0: none
	Delay            time.Duration
}

// MeshLoad is what a node is asked to send.
type MeshLoad struct {
	To    int // a node; negative: each other in its order
	Size  int // bytes of each packet, at most 4096
	Count int // packets; for each destination if it is all
	Ping  bool
}

// MeshAccess is a put or a get.
type MeshAccess struct {
	To          int // a node
	Put         bool
	Key, Offset uint64
	Data        []byte
}

// Lookup is how pages of windows are found.
type Lookup int

// Ways to find a page.
const (
	LookupCached Lookup = iota // by the cache, else hashed: the one that is used
	LookupHashed               // the window by a hash of its key, the page by its table
	LookupLinear               // the window by a search, the page by its table
)

// MeshFaults are chances of each word of a link.
type MeshFaults struct {
	Seed                      uint64
	Flip, Drop, Repeat, Stall float64
	StallFor                  time.Duration
}

// MeshState is what a node counted.
type MeshState struct {
	Alive                bool
	Sent, Came, Bytes    uint64 // packets of loads, and payload of those that arrived
	Changed, Doubled     uint64
	Refused, Unreachable uint64 // without a way from the start, and on the way
	Forwarded, Detours   uint64
	Blocked              time.Duration // time that first packets of inputs waited
	Access               MeshAccesses
	Links                [MeshLinks]MeshLink
}

// MeshAccesses are counts of puts and gets.
type MeshAccesses struct {
	Begun               uint64 // by this node: what is neither done nor failed is under way
	Done, Failed, Bytes uint64 // of those
	Repeated            uint64 // requests sent again
	Served, Denied      uint64 // requests of others
	Doubles, Stale      uint64 // requests that were repeated, before and after their end
	Malformed, Crowded  uint64 // requests dropped
	Windows             uint64 // of its memory, that there are
	WindowBytes         uint64 // of those
	Hits, Misses        uint64 // of the cache of pages
}

// MeshLink is one end of a link.
type MeshLink struct {
	Joined, Up                bool
	Level                     abi.Level
	Window                    int // words
	RoundTrip                 time.Duration
	WordsSent, WordsTaken     uint64
	BytesSent, BytesReceived  uint64
	Packets, Repeated, Errors uint64
	Restarts, Refused         uint64
	Tested, TestWrong         uint64 // words of self-tests, and those that were not as sent
}

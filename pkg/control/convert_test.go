package control

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// TestHalvesAreCarried: a client reads of a half what the contract has, and its states have the
// same names.
func TestHalvesAreCarried(t *testing.T) {
	names := nfcommsv1.Half_State(0).Descriptor().Values()
	for s := range bridge.HalfState(names.Len()) {
		name := strings.ToLower(strings.TrimPrefix(string(names.ByNumber(protoreflect.EnumNumber(s)).Name()), "STATE_"))
		require.Equal(t, strings.Replace(s.String(), "unknown", "unspecified", 1), name)
	}
	require.Contains(t, bridge.HalfState(names.Len()).String(), "state ", "the contract has one that clients do not")

	m := half(bridge.Half{
		State: bridge.HalfMoving, Closed: true, Transaction: 1, Waiting: 2, Queued: 3, Armed: 4, Slept: 5 * time.Second,
	})
	require.Equal(t, 7, reflect.TypeFor[bridge.Half]().NumField())
	require.Equal(t, nfcommsv1.Half_STATE_MOVING, m.State)
	require.True(t, m.Closed)
	require.EqualValues(t, [4]uint64{1, 2, 3, 4}, [4]uint64{m.Transaction, uint64(m.Waiting), uint64(m.Queued), uint64(m.Armed)})
	require.Equal(t, 5*time.Second, m.Slept.AsDuration())
	require.Nil(t, half(bridge.Half{}).Slept)
}

// TestBoardIsCarried: a client reads of a card what the contract has, and kinds of windows have
// the same names.
func TestBoardIsCarried(t *testing.T) {
	names := nfcommsv1.Bar_Kind(0).Descriptor().Values()
	require.Len(t, barKinds, names.Len()-1)
	for k, kind := range barKinds {
		require.Equal(t, bridge.BarKind(k).String(), strings.ToLower(strings.TrimPrefix(kind.String(), "KIND_")))
	}
	b := bridge.Board{
		Address: "0000:03:00.0", Vendor: 1, Device: 2, Serial: "s", NUMA: 3, Vectors: 4,
		Link: bridge.Link{Speed: 2.5, MaxSpeed: 5, Width: 6, MaxWidth: 7},
		Bars: []bridge.Bar{{Number: 2, Kind: bridge.BarMemory64, Prefetchable: true, Address: 8, Size: 9}},
	}
	require.Equal(t, [3]int{8, 4, 5}, [3]int{reflect.TypeOf(b).NumField(), reflect.TypeOf(b.Link).NumField(), reflect.TypeOf(b.Bars[0]).NumField()})
	m := &nfcommsv1.Device{}
	describe(m, bridge.Info{Board: &b})
	require.True(t, proto.Equal(&nfcommsv1.Board{
		Address: "0000:03:00.0", VendorId: 1, DeviceId: 2, Serial: "s", NumaNode: proto.Int32(3), Vectors: 4,
		Link: &nfcommsv1.BusLink{SpeedGts: 2.5, MaxSpeedGts: 5, Width: 6, MaxWidth: 7},
		Bars: []*nfcommsv1.Bar{{Number: 2, Kind: nfcommsv1.Bar_KIND_MEMORY_64, Prefetchable: true, Address: 8, SizeBytes: 9}},
	}, m.Board), "%v", m.Board)
	require.Nil(t, board(&bridge.Board{NUMA: -1}).NumaNode)
	describe(m, bridge.Info{})
	require.Nil(t, m.Board)
}

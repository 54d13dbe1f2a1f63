package control

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

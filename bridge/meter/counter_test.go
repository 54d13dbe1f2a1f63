package meter

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// No field of today or tomorrow is forgotten.
func TestAddStatsAddsAll(t *testing.T) {
	var one, sum bridge.ChannelStats
	numbers := each(reflect.ValueOf(&one).Elem(), func(v reflect.Value) { v.Set(reflect.ValueOf(1).Convert(v.Type())) })
	require.NotZero(t, numbers)
	AddStats(&sum, one)
	AddStats(&sum, one)
	each(reflect.ValueOf(&sum).Elem(), func(v reflect.Value) {
		assert.EqualValues(t, reflect.ValueOf(2).Convert(v.Type()).Interface(), v.Interface())
	})
}

// each calls f with every number of a structure, and returns how many they are.
func each(v reflect.Value, f func(reflect.Value)) (n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			n += each(v.Field(i), f)
		}
	case reflect.Array:
		for i := range v.Len() {
			n += each(v.Index(i), f)
		}
	default:
		f(v)
		n = 1
	}
	return n
}

package bridge

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No field of today or tomorrow is forgotten.
func TestChannelStatsAdd(t *testing.T) {
	var one, sum ChannelStats
	numbers := each(reflect.ValueOf(&one).Elem(), func(v reflect.Value) { v.Set(reflect.ValueOf(1).Convert(v.Type())) })
	require.NotZero(t, numbers)
	sum.Add(one)
	sum.Add(one)
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

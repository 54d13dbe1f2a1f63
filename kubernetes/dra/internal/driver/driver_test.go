package driver

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// TestSources: devices come with their places, and a change of them is notified.
func TestSources(t *testing.T) {
	f := newFake()
	d := newDriver(t, f, t.TempDir())
	all, changed := d.sources(t.Context())
	require.Equal(t, "1.0.0", all[0].fabric.GetNode())
	require.Nil(t, all[1].fabric)
	f.sick("s", true)
	<-changed
	all, _ = d.sources(t.Context())
	require.False(t, all[1].Healthy)
}

// TestHandleError: fields that the API server drops are left out, once with a line; an error that a
// retry mends goes on, and any other ends the driver.
func TestHandleError(t *testing.T) {
	d := newDriver(t, newFake(), t.TempDir())
	var ended error
	d.fail = func(err error) { ended = err }
	slice := new(resourceapi.ResourceSlice)
	d.HandleError(t.Context(), &resourceslice.DroppedFieldsError{PoolName: "n", DesiredSlice: slice, ActualSlice: slice}, "publish")
	require.True(t, d.plain.Load())
	require.NoError(t, ended)
	d.HandleError(t.Context(), errors.New("broken"), "server")
	require.ErrorContains(t, ended, "server: broken")
}

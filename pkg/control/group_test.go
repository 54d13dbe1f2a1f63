package control_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestGroups: members are listed by their names, page by page, with what they did.
func TestGroups(t *testing.T) {
	g, err := group.Join(background(t), group.NewMesh(1), group.Options{Size: 1, Algorithm: "isend"})
	require.NoError(t, err)
	defer g.Close()
	for range 7 {
		_, err := g.Exchange(background(t), nil)
		require.NoError(t, err)
	}
	const members = 120
	o := quick
	o.Groups = func() iter.Seq2[string, *group.Group] {
		return func(yield func(string, *group.Group) bool) {
			for i := range members {
				if !yield(fmt.Sprintf("%c\xff%03d", 'b'-i%2, i), g) { // no order, and no UTF-8
					return
				}
			}
		}
	}
	_, c := serve(t, o)
	var names []string
	for m, err := range c.ListGroups(background(t)) {
		require.NoError(t, err)
		require.EqualValues(t, 7, m.Steps)
		require.EqualValues(t, 1, m.Members)
		require.Equal(t, "isend", m.Algorithm)
		require.LessOrEqual(t, m.WaitingTime.AsDuration(), m.StepTime.AsDuration())
		names = append(names, m.Name)
	}
	require.Len(t, names, members)
	require.IsIncreasing(t, names)

	r, err := c.Groups.ListGroups(background(t), &nfcommsv1.ListGroupsRequest{})
	require.NoError(t, err)
	require.Len(t, r.Groups, 50)
	r, err = c.Groups.ListGroups(background(t), &nfcommsv1.ListGroupsRequest{PageToken: r.NextPageToken, PageSize: 70})
	require.NoError(t, err)
	require.Equal(t, names[50], r.Groups[0].Name)
	require.Empty(t, r.NextPageToken)
	_, err = c.Groups.ListGroups(background(t), &nfcommsv1.ListGroupsRequest{PageSize: -1})
	require.ErrorIs(t, err, nfcomms.ErrInvalid)
	_, err = c.Groups.ListGroups(background(t), &nfcommsv1.ListGroupsRequest{PageToken: "none"})
	require.ErrorIs(t, err, control.ErrPageToken)
}

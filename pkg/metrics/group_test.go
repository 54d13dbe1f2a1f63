package metrics

import (
	"iter"
	"os"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// TestGroups: what two members did is on the page, and every metric is documented.
func TestGroups(t *testing.T) {
	mesh := group.NewMesh(2)
	var members [2]*group.Group
	var all errgroup.Group
	for rank := range members {
		all.Go(func() (err error) {
			o := group.Options{Rank: rank, Size: 2, Algorithm: "isend", Measure: true}
			if members[rank], err = group.Join(t.Context(), mesh, o); err != nil {
				return err
			}
			for range 5 {
				if _, err = members[rank].Exchange(t.Context(), []group.Package{{Rank: 1 - rank, Data: make([]byte, 100)}}); err != nil {
					break
				}
			}
			return err
		})
	}
	require.NoError(t, all.Wait())
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewGroupCollector(func() iter.Seq2[string, *group.Group] {
		return func(yield func(string, *group.Group) bool) {
			_ = yield("a", members[0]) && yield("b", members[1])
		}
	}))
	got := scrapeOnce(t, NewGroupCollector(func() iter.Seq2[string, *group.Group] {
		return func(yield func(string, *group.Group) bool) { yield("a", members[0]) }
	}))
	require.EqualValues(t, 2, value(t, got, "nfcomms_group_members", "group", "a"))
	require.EqualValues(t, 1, value(t, got, "nfcomms_group_algorithm_info", "group", "a", "algorithm", "isend"))
	require.GreaterOrEqual(t, value(t, got, "nfcomms_group_bytes_total", "group", "a", "direction", "sent"), 500.0)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, g := range members {
		require.NoError(t, g.Close())
	}
	page, err := os.ReadFile("../../docs/groups.md")
	require.NoError(t, err)
	for _, d := range groupDescs.all {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
		require.Contains(t, string(page), "`"+name+"`")
	}
}

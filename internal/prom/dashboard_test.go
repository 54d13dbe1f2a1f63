package prom

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func readDashboard(t *testing.T) *Dashboard {
	t.Helper()
	d, err := ReadDashboard(root + "/deploy/grafana/nfcomms.json")
	require.NoError(t, err)
	return d
}

// concrete fills in what Grafana would.
func concrete(expr string) string { return Concrete(expr, "20s") }

// TestDashboardShape: panels are told apart, described, of current kinds, and
// do not overlap.
func TestDashboardShape(t *testing.T) {
	d := readDashboard(t)
	require.GreaterOrEqual(t, d.SchemaVersion, 39)
	require.NotEmpty(t, d.UID)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "two panels %d", p.ID)
		ids[p.ID] = true
		require.Contains(t, []string{"row", "stat", "timeseries", "state-timeline"}, p.Type)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Less(t, x, 24)
				require.Empty(t, taken[[2]int{x, y}], "%q lies over %q", p.Title, taken[[2]int{x, y}])
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" {
			require.NotEmpty(t, p.Description, p.Title)
			require.NotEmpty(t, p.Targets, p.Title)
		}
		if p.Type == "stat" && slices.Contains([]string{"Bps", "ops"}, p.FieldConfig.Defaults.Unit) {
			require.Contains(t, p.Targets[0].LegendFormat, "{{kind}}", "%s: a rate of several devices", p.Title)
		}
	}
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// TestDashboard runs every expression of the dashboard against a Prometheus
// that scrapes devices under load: each has an answer, and the answer has the
// labels that the legend names.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	address, reset := exporter(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	s := serve(t, false, address, "localhost:"+port) // two instances whose devices have the same names
	for _, instance := range []string{address, "localhost:" + port} {
		until(t, s, fmt.Sprintf(`count_over_time(nfcomms_resets_total{instance=%q}[1m]) > 3`, instance), some)
	}
	reset()
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		require.NotNil(t, m, v.Definition)
		for _, sample := range until(t, s, fmt.Sprintf("group by (%s) (%s)", m[2], concrete(m[1])), some) {
			require.NotEmpty(t, sample.Labels[m[2]], "variable %s", v.Name)
		}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			answers(t, s, p.Title, target.Expr, target.LegendFormat)
			until(t, s, concrete(target.Expr), ofInstances(2))
		}
	}
	for _, a := range d.Annotations.List {
		if a.Expr != "" {
			until(t, s, concrete(a.Expr), ofInstances(2))
		}
	}
}

// TestPicture: the picture is well-formed, and shows a panel of each kind with
// what a Prometheus answers.
func TestPicture(t *testing.T) {
	t.Parallel()
	address, _ := exporter(t)
	s := serve(t, false, address)
	until(t, s, `count_over_time(nfcomms_messages_total[1m]) > 8`, some)
	var b bytes.Buffer
	now := time.Now()
	picture := Picture{From: now.Add(-6 * time.Second), To: now, Step: time.Second, Rate: "20s"}
	require.NoError(t, picture.Write(t.Context(), &b, s, readDashboard(t)))
	text := b.String()
	require.NoError(t, xml.Unmarshal(b.Bytes(), new(struct{ XMLName xml.Name })))
	for _, want := range []string{"Devices ready", "Traffic", "Diagnostic word", address + " busy h2d", levels[0]} {
		require.True(t, strings.Contains(text, want), want)
	}
	require.Less(t, strings.Count(text, "No data"), 4)
}

// ofInstances accepts an answer that keeps n instances apart.
func ofInstances(n int) func([]Sample) bool {
	return func(all []Sample) bool {
		apart := map[string]bool{}
		for _, sample := range all {
			if sample.Labels["job"] == "" {
				return false
			}
			apart[sample.Labels["instance"]] = true
		}
		return len(apart) == n && !apart[""]
	}
}

// answers requires a number for an expression, and the labels of its legend.
func answers(t *testing.T, s *Server, title, expr, legend string) {
	t.Helper()
	t.Log(title, "/", legend)
	for _, sample := range until(t, s, concrete(expr), some) {
		for _, label := range legendLabel.FindAllStringSubmatch(legend, -1) {
			require.NotEmpty(t, sample.Labels[label[1]], "%s: %s", title, expr)
		}
	}
}

// TestDashboardNative: with native histograms, which come in place of the
// classic ones, the latency panels and the rules answer too.
func TestDashboardNative(t *testing.T) {
	t.Parallel()
	address, _ := exporter(t)
	s := serve(t, true, address)
	until(t, s, `histogram_count(rate(nfcomms_transfer_duration_seconds{direction="h2d"}[20s])) > 0`, some)
	classic, err := s.Query(t.Context(), `nfcomms_transfer_duration_seconds_bucket`)
	require.NoError(t, err)
	require.Empty(t, classic, "the server takes native histograms")
	asked := 0
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "histogram_quantile") {
				answers(t, s, p.Title, target.Expr, target.LegendFormat)
				asked++
			}
		}
	}
	require.Equal(t, 12, asked, "three quantiles of messages and transfers, both ways")
	for _, record := range []string{"nfcomms:message_send_seconds:p99_5m", "nfcomms:transfer_send_seconds:p99_5m"} {
		until(t, s, record, some)
	}
}

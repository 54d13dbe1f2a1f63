package prom

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// alerts returns the alerts of the rule file, with their annotations.
func alerts(t *testing.T) map[string]map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &file))
	found := map[string]map[string]string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				found[r.Alert] = r.Annotations
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

// TestRules runs the rules' own tests with promtool.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", rules)
	promtool(t, "check", "config", root+"/deploy/prometheus/prometheus.yml")
	promtool(t, "test", "rules", root+"/deploy/prometheus/nfcomms.rules_test.yml")
}

// TestEveryAlertIsTested: for each alert the tests hold a time at which it must
// fire and one at which it must not.
func TestEveryAlertIsTested(t *testing.T) {
	var file struct {
		Tests []struct {
			Checks []struct {
				Alert string `yaml:"alertname"`
				Want  []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	text, err := os.ReadFile(root + "/deploy/prometheus/nfcomms.rules_test.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &file))
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Checks {
			if len(c.Want) > 0 {
				fires[c.Alert] = true
			} else {
				quiet[c.Alert] = true
			}
		}
	}
	for name := range alerts(t) {
		require.True(t, fires[name], "no test makes %s fire", name)
		require.True(t, quiet[name], "no test keeps %s quiet", name)
	}
}

// TestEveryAlertHasARunbook: the operations manual has an entry for each alert,
// where its annotation says, and none for others.
func TestEveryAlertHasARunbook(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/operations.md")
	require.NoError(t, err)
	_, runbook, found := strings.Cut(string(text), "\n## Runbook\n")
	require.True(t, found, "docs/operations.md has no chapter Runbook")
	if i := strings.Index(runbook, "\n## "); i >= 0 {
		runbook = runbook[:i]
	}
	var entries []string
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(runbook, -1) {
		entries = append(entries, m[1])
	}
	known := alerts(t)
	for name, annotations := range known {
		require.Contains(t, entries, name)
		require.True(t, strings.HasSuffix(annotations["runbook_url"], "/docs/operations.md#"+strings.ToLower(name)), name)
		require.NotEmpty(t, annotations["summary"], name)
		require.NotEmpty(t, annotations["description"], name)
	}
	for _, name := range entries {
		require.Contains(t, known, name)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(entries))), len(entries))
}

// TestHeartbeatBetweenScrapes: the last sample of a device that is well may be as
// old as a scrape interval when a rule is evaluated, and raises no alert.
func TestHeartbeatBetweenScrapes(t *testing.T) {
	t.Parallel()
	address, _ := exporter(t)
	s := serve(t, false, address)
	until(t, s, `nfcomms_device_heartbeat_timestamp_seconds`, some)
	all, err := s.Rules(t.Context())
	require.NoError(t, err)
	asked := false
	for _, r := range all {
		if r.Name == "NFCommsHeartbeatOld" {
			firing, err := s.QueryAt(t.Context(), r.Query, time.Now().Add(14*time.Second))
			require.NoError(t, err)
			require.Empty(t, firing, r.Query)
			asked = true
		}
	}
	require.True(t, asked)
}

// TestRulesLive: a server that scrapes devices under load evaluates every rule
// without an error, and the recorded ones have values.
func TestRulesLive(t *testing.T) {
	t.Parallel()
	address, _ := exporter(t)
	s := serve(t, false, address)
	until(t, s, `nfcomms:payload_bytes:rate1m > 0`, some)
	for _, record := range []string{"nfcomms:messages:rate1m > 0", "nfcomms:errors:ratio5m == 0",
		"nfcomms:message_send_seconds:p99_5m", "nfcomms:transfer_send_seconds:p99_5m"} {
		until(t, s, record, some)
	}
	all, err := s.Rules(t.Context())
	require.NoError(t, err)
	known := alerts(t)
	for _, r := range all {
		require.Empty(t, r.Error, r.Name)
		if r.Type == "alerting" {
			require.NotEqual(t, "firing", r.State, "%s on devices that are well", r.Name)
			delete(known, r.Name)
		}
	}
	require.Empty(t, known, "not loaded")
}

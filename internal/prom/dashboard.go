package prom

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Dashboard is the part of a Grafana dashboard that can be looked at without
// Grafana.
type Dashboard struct {
	SchemaVersion int
	Title, UID    string
	Panels        []Panel
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

// Panel is a field of a dashboard, of 24 columns.
type Panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []Target
}

// Target is a query of a panel.
type Target struct{ Expr, LegendFormat, RefID string }

// ReadDashboard reads a dashboard's file.
func ReadDashboard(file string) (*Dashboard, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read dashboard: %w", err)
	}
	d := new(Dashboard)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("read dashboard %s: %w", file, err)
	}
	return d, nil
}

var variable = regexp.MustCompile(`\$(job|instance|device|channel)\b`)

// Concrete fills the variables of an expression as Grafana would with "All", and
// the time that rates are taken over.
func Concrete(expr, rateInterval string) string {
	return variable.ReplaceAllString(strings.ReplaceAll(expr, "$__rate_interval", rateInterval), ".*")
}

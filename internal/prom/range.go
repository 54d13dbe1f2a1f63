package prom

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Series is a curve: values of one set of labels over time.
type Series struct {
	// Labels are its labels by name.
	Labels map[string]string
	// Times and Values are its points; Times count in seconds since 1970.
	Times, Values []float64
}

// QueryRange asks for the values of an expression over a time.
func (s *Server) QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	var data struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Values [][2]any          `json:"values"`
		} `json:"result"`
	}
	path := fmt.Sprintf("/api/v1/query_range?query=%s&start=%.3f&end=%.3f&step=%.3f", url.QueryEscape(expr),
		float64(from.UnixMilli())/1000, float64(to.UnixMilli())/1000, step.Seconds())
	if err := s.get(ctx, path, &data); err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	var all []Series
	for _, row := range data.Result {
		c := Series{Labels: row.Metric}
		for _, pair := range row.Values {
			at, ok := pair[0].(float64)
			text, isText := pair[1].(string)
			v, err := strconv.ParseFloat(text, 64)
			if !ok || !isText || err != nil {
				return nil, fmt.Errorf("query %s: point %v", expr, pair)
			}
			c.Times, c.Values = append(c.Times, at), append(c.Values, v)
		}
		all = append(all, c)
	}
	return all, nil
}

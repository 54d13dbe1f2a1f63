package prom

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Sample is one series of an answer.
type Sample struct {
	// Labels are its labels by name.
	Labels map[string]string
	// Value is its value; that of a histogram, how much it counts.
	Value float64
}

// Query asks for the value of an expression now.
func (s *Server) Query(ctx context.Context, expr string) ([]Sample, error) {
	return s.query(ctx, expr, "")
}

// QueryAt asks for the value of an expression at a time. One that is to come is
// answered from the samples there are, as between two scrapes.
func (s *Server) QueryAt(ctx context.Context, expr string, at time.Time) ([]Sample, error) {
	return s.query(ctx, expr, fmt.Sprintf("&time=%.3f", float64(at.UnixMilli())/1000))
}

func (s *Server) query(ctx context.Context, expr, when string) ([]Sample, error) {
	var data struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	}
	if err := s.get(ctx, "/api/v1/query?query="+url.QueryEscape(expr)+when, &data); err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	samples, err := parse(data.ResultType, data.Result)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	return samples, nil
}

// parse reads a result: a vector or a scalar.
func parse(kind string, result json.RawMessage) ([]Sample, error) {
	if kind == "scalar" {
		var pair [2]any
		if err := json.Unmarshal(result, &pair); err != nil {
			return nil, err
		}
		v, err := number(pair)
		return []Sample{{Value: v}}, err
	}
	var rows []struct {
		Metric    map[string]string `json:"metric"`
		Value     [2]any            `json:"value"`
		Histogram [2]any            `json:"histogram"`
	}
	if err := json.Unmarshal(result, &rows); err != nil {
		return nil, fmt.Errorf("result of type %s: %w", kind, err)
	}
	var samples []Sample
	for _, row := range rows {
		if h, ok := row.Histogram[1].(map[string]any); ok {
			row.Value[1] = h["count"]
		}
		v, err := number(row.Value)
		if err != nil {
			return nil, err
		}
		samples = append(samples, Sample{Labels: row.Metric, Value: v})
	}
	return samples, nil
}

// number returns the value of a pair of time and text.
func number(pair [2]any) (float64, error) {
	text, ok := pair[1].(string)
	if !ok {
		return 0, fmt.Errorf("value %v is no text", pair[1])
	}
	return strconv.ParseFloat(text, 64)
}

// Rule is an alert or a recording of a rule file.
type Rule struct {
	Name  string            `json:"name"`
	Type  string            `json:"type"`  // "alerting" or "recording"
	Query string            `json:"query"` // its expression
	State string            `json:"state"` // of an alert: "inactive", "pending", "firing"
	Error string            `json:"lastError"`
	Notes map[string]string `json:"annotations"`
}

// Rules returns the rules as the server has them.
func (s *Server) Rules(ctx context.Context) ([]Rule, error) {
	var data struct {
		Groups []struct {
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	}
	if err := s.get(ctx, "/api/v1/rules", &data); err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	var all []Rule
	for _, g := range data.Groups {
		all = append(all, g.Rules...)
	}
	return all, nil
}

// scrapeError returns why the last scrape of a target failed, nil where all went well.
func (s *Server) scrapeError(ctx context.Context) error {
	var data struct {
		ActiveTargets []struct {
			ScrapeURL string `json:"scrapeUrl"`
			LastError string `json:"lastError"`
		} `json:"activeTargets"`
	}
	if err := s.get(ctx, "/api/v1/targets?state=active", &data); err != nil {
		return fmt.Errorf("list targets: %w", err)
	}
	for _, t := range data.ActiveTargets {
		if t.LastError != "" {
			return fmt.Errorf("scrape %s: %s", t.ScrapeURL, t.LastError)
		}
	}
	return nil
}

// client keeps no connection open, which would outlive the server.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// get asks the HTTP API and unpacks the data of its answer.
func (s *Server) get(ctx context.Context, path string, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", resp.Status, answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

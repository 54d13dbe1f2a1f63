package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/itchyny/gojq"
)

// compileFilter reads an expression of jq. It reads no environment and no file.
func compileFilter(expression string) (*gojq.Code, error) {
	query, err := gojq.Parse(expression)
	if err == nil {
		var code *gojq.Code
		if code, err = gojq.Compile(query); err == nil {
			return code, nil
		}
	}
	return nil, usagef("--jq %q: %w", expression, err)
}

// writeFiltered writes the values that a filter makes of a record, one a line: texts without
// quotes, others as JSON.
func writeFiltered(ctx context.Context, w io.Writer, filter *gojq.Code, r any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, r, ""); err != nil {
		return err
	}
	var doc any
	d := json.NewDecoder(&b)
	d.UseNumber() // counters have 64 bits
	if err := d.Decode(&doc); err != nil {
		return err
	}
	values := filter.RunWithContext(ctx, doc)
	for v, ok := values.Next(); ok; v, ok = values.Next() {
		line := ""
		switch v := v.(type) {
		case error:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return usagef("--jq: %w", v)
		case string:
			line = escape(v)
		default:
			text, err := gojq.Marshal(v)
			if err != nil {
				return usagef("--jq: %w", err)
			}
			line = string(text)
		}
		if _, err := io.WriteString(escapeJSON{w}, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

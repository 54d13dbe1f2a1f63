package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// record is one document of a command's output. Its fields are the JSON and
// YAML keys, nfctl explain lists them.
type record interface {
	// table writes the record for a person.
	table(p *printer)
}

// printer writes tables.
type printer struct {
	w    io.Writer
	wide bool
	// columns is the width that tables are fitted to; 0 for any.
	columns int
	// color: states may be coloured.
	color bool
	// again: this is not the first record of a series, so headings are known.
	again bool
}

// print writes the one record of a command.
func (a *app) print(r record) error {
	switch a.output {
	case "json":
		return a.writeJSON(a.buffered, r, "  ")
	case "yaml":
		return writeYAML(a.buffered, r)
	}
	r.table(a.printer())
	return a.buffered.Flush()
}

func (a *app) printer() *printer {
	return &printer{w: a.buffered, wide: a.output == "wide", color: a.color()}
}

// series writes records one by one as they arrive: a line each as JSON, a
// document each as YAML.
type series struct {
	app *app
	p   *printer
}

func (a *app) series() *series { return &series{app: a, p: a.printer()} }

func (s *series) print(r record) error {
	w := s.app.buffered
	var err error
	switch s.app.output {
	case "json":
		err = s.app.writeJSON(w, r, "")
	case "yaml":
		if _, err = io.WriteString(w, "---\n"); err == nil {
			err = writeYAML(w, r)
		}
	default:
		r.table(s.p)
	}
	s.p.again = true
	if err != nil {
		return err
	}
	return w.Flush()
}

// writeJSON writes a record as JSON, or what --jq makes of it.
func (a *app) writeJSON(w io.Writer, r any, indent string) error {
	if a.filter != nil {
		ctx, cancel := a.limited(context.Background()) // an expression may never end
		defer cancel()
		return writeFiltered(ctx, w, a.filter, r)
	}
	return writeJSON(w, r, indent)
}

func writeJSON(w io.Writer, r any, indent string) error {
	e := json.NewEncoder(escapeJSON{w})
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(r)
}

// writeYAML writes what JSON would have: the same keys in the same order.
func writeYAML(w io.Writer, r any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, r, ""); err != nil {
		return err
	}
	var doc yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(b.Bytes(), &doc); err != nil {
		return err
	}
	plain(&doc)
	b.Reset()
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&doc), e.Close()); err != nil {
		return err
	}
	_, err := escapeJSON{w}.Write(b.Bytes())
	return err
}

// plain drops the styles of JSON, but for quotes that escapes need.
func plain(n *yaml.Node) {
	if len(n.Content) > 0 {
		n.Style = 0
	} else if strings.IndexFunc(n.Value, needsEscape) < 0 {
		n.Style &^= yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		plain(c)
	}
}

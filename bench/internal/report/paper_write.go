//go:build linux

package report

import (
	"bytes"
	"embed"
	"fmt"
	html "html/template"
	"path/filepath"
	texts "text/template"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

//go:embed templates
var templates embed.FS

// save writes the report to a folder. Files are written whole or not at all: what
// an earlier run left is replaced by name.
func (r *PaperReport) save(dir string) error {
	page := make(map[string][]byte)
	for _, p := range r.Papers {
		for _, i := range p.Items {
			if i.plot != nil {
				page[i.Picture] = []byte(i.plot.SVG())
			}
		}
	}
	var b bytes.Buffer
	err := html.Must(html.New("paper.html.tmpl").Funcs(html.FuncMap{"figure": figure, "draw": draw}).
		ParseFS(templates, "templates/paper.html.tmpl")).Execute(&b, r)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	page["index.html"] = bytes.Clone(b.Bytes())
	b.Reset()
	err = texts.Must(texts.New("paper.md.tmpl").Funcs(texts.FuncMap{"figure": figure}).
		ParseFS(templates, "templates/paper.md.tmpl")).Execute(&b, r)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	page["paper.md"] = b.Bytes()
	for name, data := range page {
		if err := cli.Replace(filepath.Join(dir, name), data); err != nil {
			return cli.UsageError{Err: fmt.Errorf("write report: %w", err)}
		}
	}
	return nil
}

// draw puts a picture into the page, so that nothing stands beside it. The plot
// escapes what it is given.
func draw(i PaperItem) html.HTML {
	if i.plot == nil {
		return ""
	}
	return html.HTML(i.plot.SVG())
}

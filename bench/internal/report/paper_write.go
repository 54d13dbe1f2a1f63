//go:build linux

package report

import (
	"bytes"
	html "html/template"
)

// save writes the report to a folder.
func (r *PaperReport) save(to *folder) error {
	files := make(map[string][]byte)
	for _, p := range r.Papers {
		for _, i := range p.Items {
			if i.plot != nil {
				files[i.Picture] = []byte(i.plot.SVG())
			}
		}
	}
	var b bytes.Buffer
	t, err := html.New("paper.html.tmpl").Funcs(html.FuncMap{"figure": figure, "draw": draw}).ParseFS(templates, "templates/paper.html.tmpl")
	if err == nil {
		err = t.Execute(&b, r)
	}
	if err != nil {
		return err
	}
	files["index.html"] = b.Bytes()
	if files["paper.md"], err = render("paper.md.tmpl", r); err != nil {
		return err
	}
	return to.write(files)
}

// draw puts a picture into the page, so that nothing stands beside it. The plot
// escapes what it is given.
func draw(i PaperItem) html.HTML {
	if i.plot == nil {
		return ""
	}
	return html.HTML(i.plot.SVG())
}

//go:build linux

package report

import (
	"bytes"
	html "html/template"
	"math"
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
	t, err := html.New("paper.html.tmpl").Funcs(html.FuncMap{"figure": figure, "printed": printed, "draw": draw}).ParseFS(templates, "templates/paper.html.tmpl")
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

// Modelled is the formula's figure with a digit more than the paper prints, which shows how it is
// rounded.
func (r PaperRow) Modelled() string {
	if r.Model == nil || r.Step == 0 {
		return figure(r.Model)
	}
	digits := math.Pow(10, 1+max(0, math.Ceil(-math.Log10(r.Step))))
	rounded := math.Round(*r.Model*digits) / digits
	return printed(&rounded)
}

// draw puts a picture into the page, so that nothing stands beside it. The plot
// escapes what it is given.
func draw(i PaperItem) html.HTML {
	if i.plot == nil {
		return ""
	}
	return html.HTML(i.plot.SVG())
}

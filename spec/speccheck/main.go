// Speccheck searches the models of the protocol with SPIN, and their broken variants, each of which
// must be refuted.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/spec/internal/search"
)

func main() {
	quick := flag.Bool("quick", false, "search with smaller bounds")
	charts := flag.String("charts", "", "write the counterexamples of the broken variants to this folder")
	flag.Parse()
	if err := run(*quick, *charts); err != nil {
		fmt.Fprintln(os.Stderr, "speccheck:", err)
		os.Exit(2)
	}
}

func run(quick bool, charts string) error {
	if err := search.Check(); err != nil {
		return err
	}
	models := search.Models()
	refuted, used := 0, time.Duration(0)
	for _, m := range models {
		defines := m.Defines
		if !quick {
			defines = append(defines[:len(defines):len(defines)], m.Full...)
		}
		for p := range search.Properties() {
			f, err := m.Search(p, defines, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			if f.Error != "" {
				return fmt.Errorf("%s: %s\n\n%s", m.Name, f.Error, f.Chart)
			}
			used += f.Processor
			fmt.Printf("%-38s %10d states, depth %5d, %6.1f s of processor time\n", m.Name, f.States, f.Depth, f.Processor.Seconds())
		}
		for i := range m.Broken {
			b := &m.Broken[i]
			f, err := m.Refute(b)
			if err != nil {
				return err
			}
			used += f.Processor
			refuted++
			fmt.Printf("  refuted after %6d states: %s\n", f.States, b.Name)
			if err := write(charts, &m, b, f); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%.0f s of processor time\n", used.Seconds())
	fmt.Printf("%d models, %d properties, %d broken variants refuted\n", len(models), len(models)*search.Properties(), refuted)
	return nil
}

// write writes a counterexample.
func write(folder string, m *search.Model, b *search.Broken, f *search.Found) error {
	if folder == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(folder, chartName(m, b)), []byte(m.Name+": "+b.Name+"\n\n"+f.Chart), 0o666)
}

// chartName returns the name of a counterexample's file.
func chartName(m *search.Model, b *search.Broken) string {
	name := strings.NewReplacer(" ", "-", ",", "-").Replace(m.Name + ": " + b.Name)
	return strings.NewReplacer(":-", "_", "--", "-").Replace(name) + ".txt"
}

package main

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
)

// programRecord is the output of nfctl program new.
type programRecord struct {
	Program string   `json:"program" doc:"name of the program"`
	Folder  string   `json:"folder" doc:"folder that was made"`
	Files   []string `json:"files" doc:"files in it"`
}

func (r programRecord) table(p *printer) {
	p.printf("%s: %s\nread its README.md, then: cd %s && make test\n", r.Folder, strings.Join(r.Files, " "), r.Folder)
}

//go:embed template
var programTemplate embed.FS

// programName is a word of C, and short enough for a device.
var programName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,22}$`)

func newProgram(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "program", GroupID: groupOperate,
		Short: "Begin a device program of your own",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "new NAME",
		Short: "Make a folder with a device program, its Makefile, its test and a README",
		Long: `Make a folder of that name, which must not be there, with a device program in C that
works, a Makefile that builds and loads it, a test in Go that runs it on a simulated
device, and a README that says how to go on. No server is asked.`,
		Example: "  nfctl program new checksum && cd checksum && make test",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := makeProgram(args[0])
			if err != nil {
				return err
			}
			return a.print(r)
		},
	})
	return cmd
}

// makeProgram writes the folder of a program. After an error there is none.
func makeProgram(name string) (r programRecord, err error) {
	if !programName.MatchString(name) {
		return r, usagef("%q cannot be the name of a program: small letters, digits and _, at most 23, a letter first", name)
	}
	r = programRecord{Program: name, Folder: name}
	if err := os.Mkdir(name, 0o755); err != nil {
		return r, usageError{err}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(name))
		}
	}()
	err = fs.WalkDir(programTemplate, "template", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = r.write(path)
		}
		return err
	})
	return r, err
}

// write fills in one file of the template.
func (r *programRecord) write(from string) error {
	text, err := template.ParseFS(programTemplate, from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := text.Execute(&b, r.Program); err != nil {
		return err
	}
	to := strings.Replace(strings.TrimPrefix(from, "template/"), "program", r.Program, 1)
	to = filepath.FromSlash(strings.TrimSuffix(to, ".tmpl"))
	r.Files = append(r.Files, to)
	to = filepath.Join(r.Folder, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

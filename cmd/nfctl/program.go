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

	"github.com/nfcomms/nfcomms/pkg/program"
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

// imageRecord is the output of nfctl program build.
type imageRecord struct {
	Image string `json:"image" doc:"file that was written"`
	Bytes int    `json:"bytes" doc:"its size"`
}

func (r imageRecord) table(p *printer) { p.printf("%s: %d bytes\n", r.Image, r.Bytes) }

//go:embed template
var programTemplate embed.FS

// programName is a word of C, and short enough for a device.
var programName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,22}$`)

func newProgram(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "program", GroupID: groupOperate,
		Short: "Begin a device program of your own, and build it",
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
	cmd.AddCommand(newProgramBuild(a))
	return cmd
}

func newProgramBuild(a *app) *cobra.Command {
	var o program.Options
	cmd := &cobra.Command{
		Use:   "build FOLDER [IMAGE]",
		Short: "Compile the C files of a folder to an image that load takes",
		Long: `Compile the C files of a folder, and of the folders in it, to an image. Without IMAGE
its name is that of the folder with ".so". It needs a C compiler, $CC or cc, and nothing
else: nfctl has nfc_fw.h and the other headers. No server is asked.`,
		Example: "  nfctl program build checksum/device checksum.so && nfctl load sim0 checksum.so",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			r := imageRecord{Image: filepath.Base(folder) + ".so"}
			if len(args) == 2 {
				r.Image = args[1]
			}
			if at, err := os.Stat(args[0]); err != nil || !at.IsDir() {
				return usagef("no folder %s: the first argument is the folder of the program's C files", args[0])
			}
			image, err := program.Build(cmd.Context(), os.DirFS(folder), o)
			if err != nil {
				return buildFailed(err)
			}
			r.Bytes = len(image)
			if err := os.WriteFile(r.Image, image, 0o666); err != nil {
				return usageError{err}
			}
			return a.print(r)
		},
	}
	cmd.Flags().BoolVar(&o.Debug, "debug", false, "for a debugger: no optimisation, with checks of undefined behaviour and of the stack")
	return cmd
}

// buildFailed gives an error of program.Build its exit code: sources that are wrong are bad input.
func buildFailed(err error) error {
	var compile *program.Error
	if errors.As(err, &compile) || errors.Is(err, program.ErrSource) || errors.Is(err, program.ErrConstructor) {
		return usageError{err}
	}
	return err
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

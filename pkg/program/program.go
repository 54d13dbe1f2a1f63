package program

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/nfcomms/nfcomms/firmware"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// Options adjust how a program is built; the zero value is valid.
type Options struct {
	// Debug builds without optimisation, with the sanitizer of undefined behaviour, which
	// writes file and line of its findings to standard error, and with a guard in each frame. A
	// function that wrote past an array there crashes as it returns.
	Debug bool
	// Flags are given to the compiler after its own.
	Flags []string
	// Compiler is the command of a C compiler; empty means $CC, or cc.
	Compiler string
}

// ErrCompiler means that there is no C compiler.
var ErrCompiler = errors.New("no C compiler: install one (on Debian: apt-get install gcc libc6-dev), or set CC")

// ErrSource means that what should be built has no C files.
var ErrSource = errors.New("no C files")

// Error is what the compiler found wrong.
type Error struct {
	// Output is what it wrote; it names files as they were given.
	Output string
	// Err is how it ended.
	Err error
}

// Error returns the first line in which the compiler or the linker reports an error.
func (e *Error) Error() string {
	for line := range strings.Lines(e.Output) {
		switch {
		case strings.HasPrefix(line, "collect2: "): // only that there was one
		case strings.Contains(line, "undefined reference to "):
			if _, file, ok := strings.Cut(line, "/./"); ok { // the linker has the whole path
				line = file
			}
			line = strings.Replace(line, "`__wrap_", "`", 1)
			fallthrough
		case strings.Contains(line, "error: "):
			return "build program: " + strings.TrimSpace(line)
		}
	}
	return fmt.Sprintf("build program: %v: %s", e.Err, strings.TrimSpace(e.Output))
}

// Unwrap returns how the compiler ended.
func (e *Error) Unwrap() error { return e.Err }

// ErrConstructor means that the program has a constructor or a destructor: a device runs no
// code of an image but its programs.
var ErrConstructor = errors.New("program has a constructor or destructor, which no device runs")

// refused are functions that end the process of the device, or are called when that ends. A
// device refuses images that need them, as firmware/port/vet.c lists them.
var refused = []string{
	"_Exit", "__cxa_at_quick_exit", "__cxa_atexit", "_exit", "at_quick_exit", "atexit", "err",
	"error", "error_at_line", "errx", "exit", "on_exit", "pthread_exit", "quick_exit",
	"thrd_exit", "verr", "verrx",
}

// Flags are what the compiler is given for a program: the dialect, the warnings,
// and what makes of it an image. The line table stays in it, so that a crash can be
// named by file and line. All that it calls must be there, and nothing is added to it.
func (o Options) flags() []string {
	flags := []string{"-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror=implicit-function-declaration",
		"-shared", "-fPIC", "-nostartfiles", "-Wl,--no-undefined", "-DNFC_PROGRAM_SHARED"}
	for _, name := range refused {
		flags = append(flags, "-Wl,--wrap="+name) // to a name that is nowhere
	}
	if o.Debug {
		flags = append(flags, "-O0", "-fno-omit-frame-pointer", "-fsanitize=undefined", "-fstack-protector-all")
	} else {
		flags = append(flags, "-O2", "-fno-optimize-sibling-calls") // a crash names the line of its own call
	}
	return append(flags, o.Flags...)
}

// Build compiles every C file of sources to one image. Folders below are searched,
// too, and every file's own folder, and nfc_fw.h, are where it finds what it
// includes; symbolic links are followed. When ctx ends, the compiler and all that it
// started end, too. Errors: ErrCompiler, ErrSource, ErrConstructor, an *Error, and those
// of ctx and files.
func Build(ctx context.Context, sources fs.FS, o Options) (image []byte, err error) {
	dir, err := os.MkdirTemp("", "nfc-program")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(filepath.Join(dir, "include"), firmware.Headers); err != nil {
		return nil, err
	}
	if err := copySources(filepath.Join(dir, sourceFolder), sources, ".", true); err != nil {
		return nil, err
	}
	files, err := cFiles(sources)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "program.so")
	args := append(o.flags(), "-ffile-prefix-map="+dir+"=.", "-I"+filepath.Join(dir, "include"), "-o", out)
	if err := compile(ctx, o.Compiler, dir, append(args, files...)); err != nil {
		return nil, err
	}
	return readImage(out)
}

// readImage reads an image that a device will not refuse for what runs as it is loaded.
func readImage(path string) ([]byte, error) {
	image, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("build program: %w", err)
	}
	for _, s := range f.Sections {
		if s.Type == elf.SHT_INIT_ARRAY || s.Type == elf.SHT_FINI_ARRAY {
			return nil, fmt.Errorf("build program: %w", ErrConstructor)
		}
	}
	return image, nil
}

// copySources copies what is below root to a folder. Symbolic links to files are followed, as the
// copy has no neighbours. Links to folders stay links, unless they lead out of the sources and
// follow is set: then such a folder is copied, without the folders that it links to.
func copySources(to string, sources fs.FS, root string, follow bool) error {
	return fs.WalkDir(sources, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		info, err := fs.Stat(sources, name) // of where a link leads
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it leads nowhere: an editor's lock, or the compiler misses it
		case err != nil:
			return err
		case info.IsDir():
			target, err := fs.ReadLink(sources, name)
			if err == nil && follow && !filepath.IsAbs(target) && !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
				return copySources(to, sources, name, false)
			}
			return errors.Join(err, os.Symlink(target, at))
		case !info.Mode().IsRegular():
			return &fs.PathError{Op: "build program", Path: name, Err: fs.ErrInvalid}
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return err
		}
		return os.WriteFile(at, text, 0o600)
	})
}

// cFiles lists the C files of a program.
func cFiles(sources fs.FS) (files []string, err error) {
	err = fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".c" {
			files = append(files, "./"+name)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("build program: %w", ErrSource)
	}
	return files, err
}

// sourceFolder is where the sources are, below the folder of a build.
const sourceFolder = "source"

// compile runs the compiler in the folder of the sources, below that of the build.
func compile(ctx context.Context, compiler, dir string, args []string) error {
	for _, c := range []string{os.Getenv("CC"), "cc"} {
		if compiler == "" {
			compiler = c
		}
	}
	words := strings.Fields(compiler) // CC may hold flags
	if len(words) == 0 {
		return ErrCompiler
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return fmt.Errorf("build program: %w (%w)", ErrCompiler, err)
	}
	cmd := subprocess.Command(ctx, words[0], append(words[1:], args...)...)
	cmd.Dir = filepath.Join(dir, sourceFolder)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir) // a compiler that is killed leaves its files
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay): // it succeeded, and left a process that keeps its output
	case err != nil:
		return &Error{Output: string(out), Err: err}
	}
	return nil
}

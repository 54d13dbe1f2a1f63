package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// fileSet is what will be sent, in order, as one stream.
type fileSet struct {
	paths []string
	bytes int64
}

// demoBytes is the least that --demo moves.
const demoBytes = 1 << 30

// files finds the files that the command line names.
func (o options) files(ctx context.Context) (*fileSet, error) {
	paths := o.paths
	if o.demo {
		root, err := goRoot(ctx)
		if err != nil {
			return nil, err
		}
		paths = []string{root}
	}
	set := &fileSet{}
	for _, p := range paths {
		if err := set.add(p); err != nil {
			return nil, err
		}
	}
	if set.bytes == 0 {
		return nil, inputf("nothing to send: %s holds no bytes in files", strings.Join(paths, " "))
	}
	if o.demo {
		set.repeat(demoBytes)
	}
	return set, nil
}

// goRoot returns the folder of the Go toolchain.
func goRoot(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT")
	cmd.WaitDelay = time.Second // for output that a process of the command keeps open
	out, err := cmd.Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return "", inputf("--demo needs the go command in PATH to find files: %w", err)
	}
	return root, nil
}

// add takes a file, or all files below a folder. Every file is opened once, so
// that one which cannot be read is found before anything is sent.
func (s *fileSet) add(root string) error {
	info, err := os.Stat(root)
	if err != nil {
		return inputError{err}
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return inputf("%s is neither a file nor a folder", root)
	}
	if info.Mode().IsRegular() {
		return s.addFile(root)
	}
	return filepath.WalkDir(root+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return inputError{err}
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return s.addFile(path)
	})
}

func (s *fileSet) addFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return inputError{err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return inputError{err}
	}
	s.paths = append(s.paths, path)
	s.bytes += info.Size()
	return nil
}

// repeat takes the same files again until there are enough bytes.
func (s *fileSet) repeat(enough int64) {
	once, size := s.paths, s.bytes
	for s.bytes < enough {
		s.paths = append(s.paths, once...)
		s.bytes += size
	}
}

// reader returns the files' bytes, one file after the other.
func (s *fileSet) reader() io.ReadCloser { return &stream{paths: s.paths} }

// stream reads files one after the other and opens each when it is due.
type stream struct {
	paths []string
	open  *os.File
}

// Read fills p as far as the current file goes.
func (s *stream) Read(p []byte) (int, error) {
	for {
		if s.open == nil {
			if len(s.paths) == 0 {
				return 0, io.EOF
			}
			f, err := os.Open(s.paths[0])
			if err != nil {
				return 0, inputError{err}
			}
			s.open, s.paths = f, s.paths[1:]
		}
		n, err := s.open.Read(p)
		if n > 0 {
			return n, nil
		}
		if err != io.EOF {
			return 0, inputError{fmt.Errorf("read file: %w", err)}
		}
		if err := s.Close(); err != nil {
			return 0, err
		}
	}
}

// Close closes the file that is open.
func (s *stream) Close() error {
	if s.open == nil {
		return nil
	}
	err := s.open.Close()
	s.open = nil
	return err
}

package cli

import (
	"os"
	"path/filepath"
)

// Replace writes a file under another name and renames it.
func Replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".nfbench-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if merr := f.Chmod(0o644); err == nil {
		err = merr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // best effort: the first error counts
	}
	return err
}

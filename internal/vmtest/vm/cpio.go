package vm

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Types of files in an archive, as stat has them.
const (
	typeFolder = 0o040000
	typeFile   = 0o100000
	typeLink   = 0o120000
	typeChar   = 0o020000
)

// Archive writes an initramfs: a cpio archive of the "newc" format. Errors are
// kept and returned by Close.
type Archive struct {
	w     io.Writer
	err   error
	inode uint32
	have  map[string]bool // folders written
}

// NewArchive returns an archive that writes to w.
func NewArchive(w io.Writer) *Archive {
	return &Archive{w: w, have: map[string]bool{".": true, "/": true}}
}

// File adds a regular file with permission bits perm.
func (a *Archive) File(name string, perm uint32, data []byte) {
	a.parents(name)
	a.entry(header{name: name, mode: typeFile | perm}, data)
}

// Folder adds a folder and those above it.
func (a *Archive) Folder(name string) {
	name = clean(name)
	if a.have[name] {
		return
	}
	a.parents(name)
	a.have[name] = true
	a.entry(header{name: name, mode: typeFolder | 0o755}, nil)
}

// Link adds a symbolic link to target.
func (a *Archive) Link(name, target string) {
	a.parents(name)
	a.entry(header{name: name, mode: typeLink | 0o777}, []byte(target))
}

// Char adds a character device.
func (a *Archive) Char(name string, major, minor uint32) {
	a.parents(name)
	a.entry(header{name: name, mode: typeChar | 0o600, major: major, minor: minor}, nil)
}

// Close ends the archive and returns the first error.
func (a *Archive) Close() error {
	a.entry(header{name: "TRAILER!!!"}, nil)
	if a.err != nil {
		return fmt.Errorf("write initramfs: %w", a.err)
	}
	return nil
}

func (a *Archive) parents(name string) {
	if dir := path.Dir(clean(name)); dir != "." {
		a.Folder(dir)
	}
}

// clean makes a name relative to the root of the archive.
func clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// header is what the archive says about a file besides its content.
type header struct {
	name         string
	mode         uint32
	major, minor uint32
}

var errLarge = errors.New("a file of 4 GiB or more")

func (a *Archive) entry(h header, data []byte) {
	if uint64(len(data)) > 1<<32-1 {
		a.fail(fmt.Errorf("%s: %w", h.name, errLarge))
		return
	}
	name := clean(h.name)
	a.inode++
	links := 1
	// magic, inode, mode, uid, gid, links, time, size, device (2), special
	// device (2), length of the name with its NUL, checksum
	text := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, h.mode, 0, 0, links, 0, len(data), 0, 0, h.major, h.minor, len(name)+1, 0)
	a.write([]byte(text + name + "\x00"))
	a.pad(len(text) + len(name) + 1)
	a.write(data)
	a.pad(len(data))
}

// pad writes zeros to the next multiple of 4.
func (a *Archive) pad(n int) { a.write(make([]byte, -n&3)) }

func (a *Archive) write(p []byte) {
	if a.err != nil {
		return
	}
	_, err := a.w.Write(p)
	a.fail(err)
}

func (a *Archive) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

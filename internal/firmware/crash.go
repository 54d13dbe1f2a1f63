//go:build cgo

package firmware

/*
#include <stdlib.h>
#include "port/hosted.h"
*/
import "C"

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"
)

// Crash is how a process ended that crashed.
type Crash struct {
	Process uint64
	Program string
	Island  int
	What    string // it did, as "divided by zero"
	Offset  uint64 // in the image, if that is known

	image []byte // nil: it is not known, or not loaded any more
}

// Crashed returns the crash that ended a subscription of a host's target in this
// epoch, nil if none did. While Restart or Close is at work there is none.
func (i *Instance) Crashed(host, target uint32, generation uint64) *Crash {
	if !i.mu.TryRLock() {
		return nil
	}
	defer i.mu.RUnlock()
	var c C.struct_nfc_crash
	if i.h == nil || !C.nfc_hosted_crash(i.h, C.uint32_t(host), C.uint32_t(target), C.uint64_t(generation), &c) {
		return nil
	}
	crash := &Crash{
		Process: uint64(c.process), Program: C.GoString(&c.program[0]), Island: int(c.island),
		What: C.GoString(&c.what[0]), Offset: uint64(c.offset),
	}
	var size C.uint64_t
	if file := C.nfc_hosted_image(c.image, &size); file != nil {
		crash.image = bytes.Clone(unsafe.Slice((*byte)(file), uint64(size)))
		C.free(file)
	}
	return crash
}

// Line returns file and line of the source, empty where that is not known: the image
// has no line table, or is gone.
func (c *Crash) Line() string {
	file, err := elf.NewFile(bytes.NewReader(c.image))
	if err != nil {
		return ""
	}
	data, err := file.DWARF()
	if err != nil {
		return ""
	}
	units := data.Reader()
	unit, err := units.SeekPC(c.Offset)
	if err != nil {
		return ""
	}
	lines, err := data.LineReader(unit)
	if err != nil || lines == nil {
		return ""
	}
	at := lineAt(lines, c.Offset)
	if at == nil {
		return ""
	}
	name := at.File.Name
	if dir, ok := unit.Val(dwarf.AttrCompDir).(string); ok {
		name = strings.TrimPrefix(filepath.Clean(name), dir+"/")
	}
	return fmt.Sprintf("%s:%d", name, at.Line)
}

// lineAt finds the entry of an address. Sequences stand in any order: what a compiler
// takes for unlikely comes last and lies first.
func lineAt(lines *dwarf.LineReader, pc uint64) *dwarf.LineEntry {
	before := dwarf.LineEntry{EndSequence: true}
	for {
		var next dwarf.LineEntry
		if lines.Next(&next) != nil {
			return nil
		}
		if !before.EndSequence && before.Address <= pc && pc < next.Address {
			return &before
		}
		before = next
	}
}

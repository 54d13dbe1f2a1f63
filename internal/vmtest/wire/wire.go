package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// PlanPath is where the guest finds its plan.
const PlanPath = "/plan.json"

// DevicePipe is the named pipe in the guest that programs write a device command
// to, one a line: DeviceKill, DeviceStop or DeviceContinue, and the number of the
// device if it is not 0.
const DevicePipe = "/run/device"

// Commands to the device's process on the host. They take effect soon after the
// write, which does not wait for it.
const (
	DeviceKill     = "kill"     // SIGKILL: the device is lost for good
	DeviceStop     = "stop"     // SIGSTOP: the device hangs
	DeviceContinue = "continue" // SIGCONT
)

// Plan is what a guest does from boot to power off.
type Plan struct {
	Results  string    // the serial device that carries frames
	Modules  []Module  // loaded first, unloaded last in reverse
	Programs []Program // run one after the other
	Kmemleak bool      // scan for leaked memory at the end
	Coverage bool      // send the kernel's gcov counters at the end
	Shell    bool      // an interactive shell on the console instead of frames
	Banner   string    // printed before the shell's first prompt
	Warns    bool      // the kernel will warn of something that the job allows
}

// Module is a kernel module.
type Module struct {
	Name   string // as the kernel calls it
	Path   string // in the guest
	Params string // as for insmod
}

// Program is one program to run.
type Program struct {
	Name    string
	Path    string // in the guest
	Args    []string
	Env     []string // in addition to the guest's own
	Timeout time.Duration
}

// Kinds of frames, in the order they come in.
const (
	Hello  = "hello"  // the guest is up; Text is the kernel's release
	Begin  = "begin"  // Program starts
	Output = "output" // Data is what Program wrote to its standard output or error
	Exit   = "exit"   // Program ended with Status; Text says how if it was no exit
	Check  = "check"  // the check called Name was made; Text says what is wrong, if anything
	File   = "file"   // the file Name holds Data
	Device = "device" // Program asks for the device command Text
	End    = "end"    // all is done; nothing follows
)

// Job is the Program of a frame that belongs to none.
const Job = -1

// Frame is one message of the guest.
type Frame struct {
	Kind    string
	Program int    // index in the plan, or Job
	Name    string `json:",omitempty"`
	Text    string `json:",omitempty"`
	Data    []byte `json:",omitempty"`
	Status  int    `json:",omitempty"`
}

// Encoder writes frames; it is safe for concurrent use.
type Encoder struct {
	mu sync.Mutex
	w  io.Writer
}

// NewEncoder returns an encoder that writes to w.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w} }

// Send writes one frame.
func (e *Encoder) Send(f Frame) error {
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("send frame: %w", err)
	}
	return nil
}

// Decode calls f for every frame of r up to its end. It stops at a line that is
// no frame: a serial line that lost a byte cannot be trusted any more.
func Decode(r io.Reader, f func(Frame)) error {
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read frame: %w", err)
		}
		var frame Frame
		if err := json.Unmarshal(line, &frame); err != nil {
			return fmt.Errorf("decode frame %.80q: %w", line, err)
		}
		f(frame)
	}
}

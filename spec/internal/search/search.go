package search

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// properties are those of each model, and how its search is compiled. A broken variant is searched
// for its shortest counterexample.
var properties = []struct {
	name   string
	flags  []string // of the compiler
	broken []string // … for a variant
	run    []string
}{
	{"no assertion fails, and nothing stands still", []string{"-DSAFETY"}, []string{"-DSAFETY", "-DBFS"}, nil},
	{"no cycle is without progress, if processes are weakly fair", []string{"-DNP", "-DNFAIR=4"}, []string{"-DNP", "-DNFAIR=4"}, []string{"-l", "-f"}},
}

// Properties is the number of properties of each model.
func Properties() int { return len(properties) }

// Found is the result of one search.
type Found struct {
	States, Depth int
	Processor     time.Duration // of SPIN, the compiler and the search
	Error         string        // the property that does not hold, in SPIN's words; empty: it holds
	Chart         string        // the counterexample
}

// Search runs SPIN on a model with further defines, or on a broken variant of it, for one property.
// An error means that the search did not end within its bounds.
func (m *Model) Search(property int, defines []string, broken *Broken) (*Found, error) {
	dir, err := os.MkdirTemp("", "spec")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	rows := newTables()
	flags := properties[property].flags
	if broken != nil {
		flags = properties[property].broken
		if err := broken.change(rows); err != nil {
			return nil, err
		}
	}
	if err := m.write(dir, rows); err != nil {
		return nil, err
	}
	var args []string
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	var text []byte
	var used time.Duration
	for _, c := range [][]string{
		append(append([]string{"spin", "-a"}, args...), "model.pml"),
		append(append([]string{"gcc"}, flags...), optimize(defines, m), "-w", "-o", "pan", "pan.c"),
		append([]string{"./pan", "-m200000", "-w20"}, properties[property].run...),
	} {
		var took time.Duration
		if text, took, err = command(dir, c[0], c[1:]...); err != nil {
			return nil, err
		}
		used += took
	}
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	f.Processor = used
	if f.Error != "" {
		replay, _, err := command(dir, "spin", append(append([]string{"-t", "-T", "-p", "-s", "-r"}, args...), "model.pml")...)
		if err != nil {
			return nil, err
		}
		f.Chart = chart(string(replay), f.Error)
	}
	return f, nil
}

// tables are the rows that models are made of.
type tables struct {
	host   []proto.Row
	device []proto.DeviceRow
	ends   []proto.ConnectionRow
	wholes []proto.EndRow
	dial   []proto.DialRow
	moves  []proto.MoveRow
}

func newTables() *tables {
	return &tables{proto.Rows(), proto.DeviceRows(), proto.ConnectionRows(), proto.EndRows(), proto.DialRows(), proto.MoveRows()}
}

// write writes the model's files.
func (m *Model) write(dir string, rows *tables) error {
	model, err := sources.ReadFile("models/" + m.File + ".pml")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"host.pml": HostPromela(rows.host), "device.pml": DevicePromela(rows.device),
		"ends.pml": ConnectionPromela(rows.ends, rows.wholes), "dial.pml": DialPromela(rows.dial),
		"move.pml": MovePromela(rows.moves), "model.pml": string(model),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// optimize is how the search is compiled: a small one takes less time than a compiler that optimizes.
func optimize(defines []string, m *Model) string {
	if !m.Long && len(defines) >= len(m.Defines)+len(m.Full) {
		return "-O1"
	}
	return "-O0"
}

// Check compiles the rows of all tables. An error names two that contradict each other.
func Check() error { return newTables().check() }

func (t *tables) check() error {
	_, host := proto.NewTable(t.host)
	_, device := proto.NewDeviceTable(t.device)
	_, ends := proto.NewConnectionTable(t.ends)
	_, dial := proto.NewDial(t.dial)
	_, moves := proto.NewMoves(t.moves)
	return cmp.Or(host, device, ends, proto.CheckEnds(t.wholes), dial, moves)
}

// change changes the rows of a variant, which must find one.
func (b *Broken) change(rows *tables) error {
	changed := b.Host == nil && b.Device == nil && b.End == nil && b.Dial == nil && b.Move == nil
	changed = changeEach(rows.host, b.Host) || changed
	changed = changeEach(rows.device, b.Device) || changed
	changed = changeEach(rows.ends, b.End) || changed
	changed = changeEach(rows.dial, b.Dial) || changed
	changed = changeEach(rows.moves, b.Move) || changed
	if !changed {
		return fmt.Errorf("%s: no row is like that", b.Name)
	}
	return nil
}

// changeEach reports whether a change, if there is one, alters a row.
func changeEach[R comparable](rows []R, change func(*R)) (changed bool) {
	for i := range rows {
		if change != nil {
			before := rows[i]
			change(&rows[i])
			changed = changed || before != rows[i]
		}
	}
	return changed
}

// command runs a program in a folder. It returns its output and its processor time.
func command(dir, name string, args ...string) ([]byte, time.Duration, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	text, err := c.CombinedOutput()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return text, c.ProcessState.UserTime() + c.ProcessState.SystemTime(), nil
}

var (
	panError  = regexp.MustCompile(`pan:\d+: (.*) \(at depth \d+\)`)
	panStates = regexp.MustCompile(`(\d+) states, stored`)
	panDepth  = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
)

// parse reads what a search printed.
func parse(text []byte) (*Found, error) {
	var f Found
	states, depth := panStates.FindSubmatch(text), panDepth.FindSubmatch(text)
	if states == nil || depth == nil {
		return nil, fmt.Errorf("the search did not end: %s", text)
	}
	for _, bound := range []string{"max search depth too small", "out of memory", "Search not completed"} {
		if bytes.Contains(text, []byte(bound)) && string(depth[2]) == "0" {
			return nil, fmt.Errorf("the bound of the search is exceeded: %s, after %s states", bound, states[1])
		}
	}
	f.States, _ = strconv.Atoi(string(states[1]))
	f.Depth, _ = strconv.Atoi(string(depth[1]))
	if e := panError.FindSubmatch(text); e != nil {
		f.Error = string(e[1])
	} else if string(depth[2]) != "0" {
		return nil, fmt.Errorf("errors without a reason: %s", text)
	}
	return &f, nil
}

// Refute finds a counterexample of a broken variant. An error means that there is none.
func (m *Model) Refute(b *Broken) (*Found, error) {
	defines := append(m.Defines[:len(m.Defines):len(m.Defines)], b.Defines...)
	for p := range properties {
		f, err := m.Search(p, defines, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", m.Name, b.Name, err)
		}
		if f.Error != "" {
			return f, nil
		}
	}
	return nil, fmt.Errorf("%s: %s: not refuted", m.Name, b.Name)
}

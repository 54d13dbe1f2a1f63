package talk

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Open is how a conversation begins: the subscription as the reply to OPEN grants it.
type Open struct {
	Next       [2]uint64 // next transaction of each half
	Generation uint64
	Window     uint64 // lists in flight
	Limit      uint64 // bytes of the largest transfer
	Runs       uint64 // 1: entries of lists are runs
}

// split cuts the buffer of every transfer.
func (o *Open) split(size uint64) proto.Split {
	return proto.Split{Address: Address, Size: size, Runs: o.Runs != 0}
}

// Kind is what happens in a step.
type Kind int

// Kinds of steps.
const (
	HostPuts   Kind = iota // ">" and ">~": Slot, and the half's State after it
	DevicePuts             // "<" and its "=": Slot, Event, and State if HasState
	Arrive                 // "~": what the host put late arrives at the device
	HostDoes               // "host": Words[0] is hold, release or shut; State after it
	Target                 // "target": Words is the call; or "device": Words is the line
	Returns                // "target returns": Result
	Pending                // "target pending": its call has not returned
)

// Step is one line of a conversation, or two of them: "<" and "=".
type Step struct {
	Line     int
	Kind     Kind
	Half     abi.Direction
	Slot     wire.Slot
	Late     bool // of HostPuts: it is under way until Arrive
	Event    proto.Event
	State    proto.State
	HasState bool
	Words    []string
	Result   int // of Returns: as in C, the negative status for an error

	said *said
}

// Match returns an error if a slot that the device put is not that of the step.
func (s *Step) Match(got *wire.Slot) error { return s.said.match(&s.Slot, got) }

// Conversation is one of a file.
type Conversation struct {
	Name        string // of file and conversation
	File        string
	Line        int
	HostOnly    string // why device parties do not play it; empty: they do
	DeviceOnly  string // why host parties do not play it
	NotByCalls  string // why a host that is driven by calls does not play it
	NotByScript string // why a device that is a script does not play it
	Open        Open
	Steps       []Step

	half  abi.Direction
	cut   [2]proto.Split
	await bool // "=" must follow
	over  bool // a fault: nothing may follow
}

// at returns an error with its place.
func (c *Conversation) at(line int, err error) error {
	return fmt.Errorf("%s:%d: %w", c.File, line, err)
}

// Load reads every .talk file of a folder and checks what host parties play against the table.
func Load(files fs.FS, table *proto.Table) ([]*Conversation, error) {
	names, err := fs.Glob(files, "*.talk")
	if err != nil {
		return nil, err
	}
	var all []*Conversation
	for _, name := range names {
		list, err := parseFile(files, name)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	if err := unique(all); err != nil {
		return nil, err
	}
	for _, c := range all {
		if err := c.check(table); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unique refuses a name or a conversation that is there twice.
func unique(all []*Conversation) error {
	names, bodies := map[string]*Conversation{}, map[string]*Conversation{}
	for _, c := range all {
		var body strings.Builder
		fmt.Fprint(&body, c.Open)
		for _, s := range c.Steps {
			fmt.Fprint(&body, s.Kind, s.Half, s.Slot, s.Late, s.Words, s.Result)
		}
		if first := names[c.Name]; first != nil {
			return c.at(c.Line, fmt.Errorf("the name is that of %s:%d", first.File, first.Line))
		}
		if first := bodies[body.String()]; first != nil {
			return c.at(c.Line, fmt.Errorf("the conversation is that of %s:%d", first.File, first.Line))
		}
		names[c.Name], bodies[body.String()] = c, c
	}
	return nil
}

// parseFile reads one file.
func parseFile(files fs.FS, name string) ([]*Conversation, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &parser{file: name}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		p.line++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := p.take(words); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
	}
	return p.all, nil
}

// parser reads a file line by line.
type parser struct {
	file string
	line int
	all  []*Conversation
	c    *Conversation
}

// finish ends the conversation before the next one or the end of the file.
func (p *parser) finish() error {
	if p.c == nil {
		return nil
	}
	if p.c.await {
		return fmt.Errorf("%q without what the host makes of it", "<")
	}
	if len(p.c.Steps) == 0 {
		return fmt.Errorf("conversation %q is empty", p.c.Name)
	}
	return nil
}

// take reads one line.
func (p *parser) take(words []string) error {
	if words[0] == "talk" {
		return p.begin(words[1:])
	}
	c := p.c
	if c == nil {
		return fmt.Errorf("%q before the first talk", words[0])
	}
	if c.await && words[0] != "=" {
		return fmt.Errorf("%q without what the host makes of it", "<")
	}
	if c.over {
		return fmt.Errorf("a fault is the end of a conversation")
	}
	step := Step{Line: p.line, Half: c.half}
	switch words[0] {
	case "only", "not", "half", "open":
		if len(c.Steps) > 0 {
			return fmt.Errorf("%q after the first step", words[0])
		}
		return c.setting(words)
	case ">", ">~", "<":
		return c.slot(words, step)
	case "=":
		return c.outcome(words[1:])
	case "~":
		step.Kind = Arrive
	case "host":
		step.Kind, step.Words = HostDoes, words[1:]
		if len(words) != 2 || !slices.Contains([]string{"hold", "release", "shut"}, words[1]) {
			return fmt.Errorf("unknown words %q of the host", words[1:])
		}
	case "target":
		return c.target(words[1:], step)
	case "device":
		return c.device(words, step)
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	c.Steps = append(c.Steps, step)
	return nil
}

// begin begins a conversation.
func (p *parser) begin(name []string) error {
	if err := p.finish(); err != nil {
		return err
	}
	if len(name) == 0 {
		return fmt.Errorf("a conversation without a name")
	}
	p.c = &Conversation{
		Name: strings.TrimSuffix(path.Base(p.file), ".talk") + "/" + strings.Join(name, " "),
		File: p.file, Line: p.line,
		Open: Open{Next: [2]uint64{1, 1}, Generation: 9, Window: 4, Limit: 1 << 40},
	}
	p.all = append(p.all, p.c)
	return nil
}

// setting reads "only", "not", "half" and "open".
func (c *Conversation) setting(words []string) error {
	line := strings.Join(words, " ")
	for begin, why := range map[string]*string{
		"only host: ": &c.HostOnly, "only device: ": &c.DeviceOnly, "not by calls: ": &c.NotByCalls,
		"not by script: ": &c.NotByScript,
	} {
		if reason, ok := strings.CutPrefix(line, begin); ok {
			*why = reason
			return nil
		}
	}
	switch {
	case line == "half d2h":
		c.half = abi.D2H
	case words[0] == "open" && len(words) > 1:
		return c.opening(words[1:])
	default:
		return fmt.Errorf("unknown words %q", words)
	}
	return nil
}

// opening reads the settings of "open".
func (c *Conversation) opening(words []string) error {
	to := map[string]*uint64{
		"h2d": &c.Open.Next[abi.H2D], "d2h": &c.Open.Next[abi.D2H], "generation": &c.Open.Generation,
		"window": &c.Open.Window, "limit": &c.Open.Limit, "runs": &c.Open.Runs,
	}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.ParseUint(value, 0, 64)
		if err != nil || to[key] == nil {
			return fmt.Errorf("unknown word %q", w)
		}
		*to[key] = n
	}
	return nil
}

// slot reads ">", ">~" and "<".
func (c *Conversation) slot(words []string, step Step) error {
	s, err := parseSlot(words[1:], c.half)
	if err != nil {
		return err
	}
	host := words[0] != "<"
	s.half = travels(s.kind, s.half, host)
	if s.kind == wire.TypeIndBegin {
		c.cut[s.half] = c.Open.split(s.get("size", 0))
	}
	step.said, step.Half, step.Late = s, s.half, words[0] == ">~"
	if step.Slot, err = s.slot(c.cut[s.half], &c.Open); err != nil {
		return err
	}
	step.Kind = HostPuts
	if !host {
		step.Kind = DevicePuts
		c.await = c.DeviceOnly == ""
	}
	c.Steps = append(c.Steps, step)
	return nil
}

// travels returns the half of a slot whose type and way leave no choice, or else what it is given.
func travels(t wire.Type, half abi.Direction, host bool) abi.Direction {
	switch t {
	case wire.TypeDirect, wire.TypeIndBegin, wire.TypeOffer: // by the side that offers
	case wire.TypeCall, wire.TypeAnswer:
		return abi.H2D
	case wire.TypeWithdraw, wire.TypeWithdrawn: // the host posts pages for d2h, too
		if host == (t == wire.TypeWithdraw) {
			return half
		}
		return abi.D2H
	case wire.TypeReady: // by the other
		host = !host
	case wire.TypeAck, wire.TypeError:
		if host {
			return abi.D2H
		}
		return half
	default:
		return half
	}
	if host {
		return abi.H2D
	}
	return abi.D2H
}

// outcome reads "=".
func (c *Conversation) outcome(words []string) error {
	if !c.await {
		return fmt.Errorf("%q follows no %q", "=", "<")
	}
	c.await = false
	step := &c.Steps[len(c.Steps)-1]
	if len(words) == 0 || len(words) > 2 {
		return fmt.Errorf("%d words after %q, not an event and a state", len(words), "=")
	}
	event, ok := proto.ParseEvent(words[0])
	if !ok {
		return fmt.Errorf("unknown event %q", words[0])
	}
	step.Event = event
	c.over = event == proto.EventFault
	stateless := event == proto.EventFault || event == proto.EventClosed || event == proto.EventOver
	switch {
	case len(words) == 2 && !stateless:
		if step.State, step.HasState = proto.ParseState(words[1]); !step.HasState {
			return fmt.Errorf("unknown state %q", words[1])
		}
	case len(words) == 2:
		return fmt.Errorf("%v has no state", event)
	case !stateless && event != proto.EventStale:
		return fmt.Errorf("%v without a state", event)
	}
	return nil
}

// device reads what becomes of the device's engine, and of its patience.
func (c *Conversation) device(words []string, step Step) error {
	numbers, ok := map[string]int{"works": 0, "slow": 0, "fails": 0, "hasty": 0, "busy": 1}[strings.Join(words[1:min(2, len(words))], "")]
	if !ok || len(words) != 2+numbers {
		return fmt.Errorf("unknown words %q of the device", words[1:])
	}
	if _, err := strconv.ParseUint(words[len(words)-1], 0, 8); numbers == 1 && err != nil {
		return fmt.Errorf("unknown number %q of copies", words[2])
	}
	step.Kind, step.Words = Target, words
	c.Steps = append(c.Steps, step)
	return nil
}

// target reads a call of the device's process, or its result.
func (c *Conversation) target(words []string, step Step) error {
	calls := map[string]int{"read": 1, "read_ind": 1, "take": 1, "question": 1, "reply": 1, "write": 1, "write_ind": 1, "wait": 0, "close": 1, "stop": 0}
	if len(words) == 2 && words[0] == "returns" {
		step.Kind = Returns
		if i := slices.Index(statusNames, words[1]); i >= 0 {
			step.Result = -i
		} else if n, err := strconv.Atoi(words[1]); err == nil {
			step.Result = n
		} else {
			return fmt.Errorf("unknown result %q", words[1])
		}
		c.Steps = append(c.Steps, step)
		return nil
	}
	if len(words) == 1 && words[0] == "pending" {
		step.Kind = Pending
		c.Steps = append(c.Steps, step)
		return nil
	}
	if len(words) == 0 {
		return fmt.Errorf("a call of the target is missing")
	}
	n, ok := calls[words[0]]
	if !ok || len(words) != n+1 {
		return fmt.Errorf("unknown call %q of the target", words)
	}
	_, err := strconv.ParseUint(words[n], 0, 48)
	if n == 1 && (words[0] == "close") != (err != nil) ||
		words[0] == "close" && !slices.Contains([]string{"h2d", "d2h", "both"}, words[1]) {
		return fmt.Errorf("unknown argument %q of the target's %s", words[1], words[0])
	}
	step.Kind, step.Words = Target, words
	c.Steps = append(c.Steps, step)
	return nil
}

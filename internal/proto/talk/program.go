package talk

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Program is a party in another process. It answers each line on its standard input with one line
// on its standard output. A slot is its eight words in hexadecimal, header first. An answer that
// begins with "no" is an error: the rest of the line is the reason.
//
// A host, see [Host]:
//
//	open H2D D2H GENERATION WINDOW LIMIT RUNS   ok       next ids; the epoch is 1, the channel 5
//	put SLOT                               STATE
//	take SLOT                              EVENT STATE   a slot of the device
//	hold D, release D, shut D              STATE         D is h2d or d2h
//
// A device, see [Device]:
//
//	open …                                 ok
//	call WORDS                             ok
//	returned                               N
//	deliver SLOT                           ok
//	next                                   SLOT, or none
//
// A device between two hosts a and b, see [Hosts]; the epoch and the channel are the same for both:
//
//	hosts open H2D D2H H2D D2H GENERATION  ok
//	hosts connect, accept, refuse, time    ok
//	hosts subscribe X, detach X            ok
//	hosts deliver X SLOT, put X SLOT       ok        the latter is taken with the next one
//	hosts next X                           SLOT, or none
//
// Devices of a process that connects, see [Guests]; an answer has the observations behind its first word:
//
//	guests open KIND                       ok        a number, see [proto.DialKind]
//	guests EVENT                           ok ANSWER
//
// A device at which an end moves, see [Moves], in the same way:
//
//	moves open                             ok
//	moves EVENT                            ok ANSWER
type Program struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	// Lines that are written together with the next one, and the number of their answers.
	early      []byte
	unanswered int
}

var (
	_ Host   = (*Program)(nil)
	_ Device = (*Program)(nil)
)

// Start runs a program. The caller closes it.
func Start(name string, args ...string) (*Program, error) {
	p := &Program{cmd: exec.Command(name, args...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// Close ends the program's input and waits for it.
func (p *Program) Close() error {
	_ = p.in.Close() // the program may have ended
	return p.cmd.Wait()
}

// queue has a line sent together with the next one. An error that answers it is that line's.
func (p *Program) queue(format string, args ...any) {
	p.early = fmt.Appendf(p.early, format+"\n", args...)
	p.unanswered++
}

// ask sends a line and returns the words of the answer.
func (p *Program) ask(format string, args ...any) ([]string, error) {
	_, err := p.in.Write(fmt.Appendf(p.early, format+"\n", args...))
	p.early = p.early[:0]
	for ; p.unanswered > 0 && err == nil; p.unanswered-- {
		_, err = p.answer("the line before")
	}
	if err != nil {
		return nil, err
	}
	return p.answer(fmt.Sprintf(format, args...))
}

// answer returns the words of the next answer.
func (p *Program) answer(to string) ([]string, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("no answer to %q: %w", to, err)
	}
	words := strings.Fields(line)
	if len(words) == 0 || strings.TrimSuffix(words[0], ":") == "no" {
		return nil, fmt.Errorf("%s", strings.TrimSpace(line))
	}
	return words, nil
}

// Open begins a conversation.
func (p *Program) Open(o *Open) error {
	_, err := p.ask("%s", o.line())
	return err
}

// line is what opens a conversation of a program.
func (o *Open) line() string {
	return fmt.Sprintf("open %d %d %d %d %d %d", o.Next[abi.H2D], o.Next[abi.D2H], o.Generation, o.Window, o.Limit, o.Runs)
}

// Put makes the host put a slot.
func (p *Program) Put(s *wire.Slot) (proto.State, error) { return p.state("put %s", words(s)) }

// Do makes the host hold or release the offer, or shut a half.
func (p *Program) Do(what string, half abi.Direction) (proto.State, error) {
	return p.state("%s %v", what, half)
}

// state asks for something that is answered by a state.
func (p *Program) state(format string, args ...any) (proto.State, error) {
	answer, err := p.ask(format, args...)
	if err != nil {
		return 0, err
	}
	state, ok := proto.ParseState(answer[0])
	if !ok {
		return 0, fmt.Errorf("unknown state %q", answer)
	}
	return state, nil
}

// Take gives the host a slot of the device.
func (p *Program) Take(s *wire.Slot) (proto.Event, proto.State, error) {
	answer, err := p.ask("take %s", words(s))
	if err != nil {
		return 0, 0, err
	}
	if len(answer) == 2 {
		event, ok := proto.ParseEvent(answer[0])
		state, ok2 := proto.ParseState(answer[1])
		if ok && ok2 {
			return event, state, nil
		}
	}
	return 0, 0, fmt.Errorf("unknown event or state %q", answer)
}

// Call makes the device's process begin a call. An error is that of the next line.
func (p *Program) Call(words []string) error {
	p.queue("call %s", strings.Join(words, " "))
	return nil
}

// Returned returns the result of the call that has returned.
func (p *Program) Returned() (int, error) {
	answer, err := p.ask("returned")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(answer[0])
}

// Deliver gives the device a slot of the host. An error is that of the next line.
func (p *Program) Deliver(s *wire.Slot) error {
	p.queue("deliver %s", words(s))
	return nil
}

// Next returns the next slot that the device has put.
func (p *Program) Next() (*wire.Slot, error) { return p.slot("next") }

// slot asks for something that is answered by a slot, or none.
func (p *Program) slot(format string, args ...any) (*wire.Slot, error) {
	answer, err := p.ask(format, args...)
	if err != nil || answer[0] == "none" {
		return nil, err
	}
	var s wire.Slot
	if len(answer) != 8 {
		return nil, fmt.Errorf("a slot of %d words", len(answer))
	}
	for i, w := range answer {
		n, err := strconv.ParseUint(w, 16, 64)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.Header = n
		} else {
			s.Payload[i-1] = n
		}
	}
	return &s, nil
}

// Exchange sends lines at once, and returns their answers.
func (p *Program) Exchange(lines []string) ([]string, error) {
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n")
		sent <- err
	}()
	answers := make([]string, 0, len(lines))
	for range lines {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return answers, fmt.Errorf("no answer to %q: %w", lines[len(answers)], err)
		}
		answers = append(answers, strings.TrimSpace(line))
	}
	return answers, <-sent
}

// words writes a slot.
func words(s *wire.Slot) string {
	text := strconv.AppendUint(nil, s.Header, 16)
	for _, w := range s.Payload {
		text = strconv.AppendUint(append(text, ' '), w, 16)
	}
	return string(text)
}

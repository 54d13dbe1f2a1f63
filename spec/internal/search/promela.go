package search

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

// identifier makes a word of Promela of a name.
func identifier(name string) string {
	word := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
	return strings.Trim(strings.ReplaceAll(word, "__", "_"), "_")
}

// define writes constants, one for each value below count.
func define[T interface {
	~uint8
	fmt.Stringer
}](b *strings.Builder, prefix string, count T) {
	for n := T(0); n < count; n++ {
		if name := identifier(n.String()); name != "" {
			fmt.Fprintf(b, "#define %s%s %d\n", prefix, name, n)
		}
	}
}

// transition is a row of either table, as Promela needs it.
type transition struct {
	direction           abi.Direction
	input               string
	state, next         string
	with, without       int
	keep, set           int
	results             string // assignments
	text                string // for a comment
	unnamed, parameters string
}

// HostPromela writes the host's rows as Promela: for each half and input a macro may_host_… that says
// whether a row fits, and an inline host_… that follows it.
func HostPromela(rows []proto.Row) string {
	var b strings.Builder
	b.WriteString("/* The host's rows of internal/proto. Generated. */\n")
	define(&b, "H_", proto.StateCalled+1)
	define(&b, "E_", proto.EventUnanswered+1)
	b.WriteString("#define E_never 99\n#define M_recall 1\n#define M_held 2\n#define M_closed 4\n#define M_accepted 8\n")
	var list []transition
	for _, r := range rows {
		keep := 15 &^ int(r.Clear)
		if r.Next == proto.StateIdle {
			keep &^= int(proto.MarkRecall | proto.MarkHeld | proto.MarkAccepted)
		}
		unnamed := "ev = E_never"
		if r.Input.ByDevice() {
			unnamed = "ev = E_fault"
		}
		list = append(list, transition{
			direction: r.Direction, input: "host_" + r.Direction.String() + "_" + identifier(r.Input.String()),
			state: "H_" + identifier(r.State.String()), next: "H_" + identifier(r.Next.String()),
			with: int(r.With), without: int(r.Without), keep: keep, set: int(r.Set),
			results: "ev = E_" + identifier(r.Event.String()), text: r.String(), unnamed: unnamed, parameters: "s, m, ev",
		})
	}
	inlines(&b, list)
	return b.String()
}

// DevicePromela writes the device's rows in the same way: may_dev_… and dev_….
func DevicePromela(rows []proto.DeviceRow) string {
	var b strings.Builder
	b.WriteString("/* The device's rows of internal/proto. Generated. */\n")
	define(&b, "D_", proto.DeviceTaken+1)
	define(&b, "P_", proto.PutAnswer+1)
	b.WriteString("#define P_nothing 0\n#define P_dropped 99\n#define R_stays 0\n#define R_succeeds 1\n#define R_fails 2\n")
	for i, n := range []string{"listed", "pages", "ending", "aborted", "posted", "due", "shut", "notice", "closed"} {
		fmt.Fprintf(&b, "#define N_%s %d\n", n, 1<<i)
	}
	var list []transition
	for _, r := range rows {
		half := proto.DeviceHalf{State: r.State, Marks: 1<<9 - 1}.From(r)
		put := "P_" + identifier(r.Put.String())
		if r.Put == proto.PutNothing {
			put = "P_nothing"
		}
		list = append(list, transition{
			direction: r.Direction, input: "dev_" + r.Direction.String() + "_" + identifier(r.Input.String()),
			state: "D_" + identifier(r.State.String()), next: "D_" + identifier(r.Next.String()),
			with: int(r.With), without: int(r.Without), keep: int(half.Marks &^ r.Set), set: int(r.Set),
			results: fmt.Sprintf("put = %s; ret = %d", put, r.Return), text: r.String(),
			unnamed: "put = P_dropped; ret = 0", parameters: "s, m, put, ret",
		})
	}
	inlines(&b, list)
	return b.String()
}

// ConnectionPromela writes the rows of the ends between two hosts in the same way: may_end_… and end_…,
// whole_… of an end as a whole.
func ConnectionPromela(rows []proto.ConnectionRow, ends []proto.EndRow) string {
	var b strings.Builder
	b.WriteString("/* The rows of internal/proto of the ends between two hosts. Generated. */\n")
	define(&b, "D_", proto.DeviceTaken+1)
	define(&b, "P_", proto.PutAnswer+1)
	define(&b, "W_", proto.EndAlone+1)
	b.WriteString("#define P_nothing 0\n#define P_dropped 99\n")
	for m := proto.EndListed; m <= proto.EndEnding; m <<= 1 {
		fmt.Fprintf(&b, "#define K_%s %d\n", identifier(m.String()), m)
	}
	for n := proto.NewsAnswered; n <= proto.NewsTook; n <<= 1 {
		fmt.Fprintf(&b, "#define N_%s %d\n", identifier(n.String()), n)
	}
	for s := abi.OK; s < abi.StatusCount; s++ {
		fmt.Fprintf(&b, "#define S_%s %d\n", s, s)
	}
	var list []transition
	for _, r := range rows {
		half := proto.ConnectionHalf{State: r.State, Marks: 2*proto.EndEnding - 1}.From(r)
		list = append(list, transition{
			direction: r.Direction, input: "end_" + r.Direction.String() + "_" + identifier(r.Input.String()),
			state: "D_" + identifier(r.State.String()), next: "D_" + identifier(r.Next.String()),
			with: int(r.With), without: int(r.Without), keep: int(half.Marks &^ r.Set), set: int(r.Set),
			results: fmt.Sprintf("put = %d; st = %d; news = %d", r.Put, r.Status, r.Notify), text: r.String(),
			unnamed: "put = P_dropped; st = 0; news = 0", parameters: "s, m, put, st, news",
		})
	}
	for _, r := range ends {
		list = append(list, transition{
			input: "whole_" + identifier(r.Input.String()),
			state: "W_" + identifier(r.State.String()), next: "W_" + identifier(r.Next.String()),
			results: fmt.Sprintf("put = %d; news = %d", r.Put, r.Notify), text: r.String(),
			unnamed: "put = P_dropped; news = 0", parameters: "s, m, put, news",
		})
	}
	inlines(&b, list)
	return b.String()
}

// DialPromela writes the rows of connections that processes open in the same way: may_dial_… and dial_….
// The marks are the kind of the connection.
func DialPromela(rows []proto.DialRow) string {
	var b strings.Builder
	b.WriteString("/* The rows of internal/proto of connections that processes open. Generated. */\n")
	define(&b, "L_", proto.DialAlone+1)
	define(&b, "Q_", proto.DialLeaves+1)
	b.WriteString("#define Q_none 0\n#define L_never 99\n")
	var list []transition
	for _, r := range rows {
		list = append(list, transition{
			input: "dial_" + r.End.String() + "_" + identifier(r.Input.String()),
			state: "L_" + identifier(r.State.String()), next: "L_" + identifier(r.Next.String()),
			with: int(r.With), without: int(r.Without), keep: int(proto.DialHost | proto.DialFar),
			results: fmt.Sprintf("does = %d; st = %d; news = %d", r.Does, r.Status, r.Sends), text: r.String(),
			unnamed: "does = L_never; news = Q_none", parameters: "s, m, does, st, news",
		})
	}
	inlines(&b, list)
	return b.String()
}

// MovePromela writes the rows of ends that move in the same way: may_move_… and move_….
func MovePromela(rows []proto.MoveRow) string {
	var b strings.Builder
	b.WriteString("/* The rows of internal/proto of ends that move. Generated. */\n")
	define(&b, "V_", proto.MoveLeft+1)
	define(&b, "Y_", proto.MoveGone+1)
	b.WriteString("#define Y_never 99\n")
	var list []transition
	for _, r := range rows {
		list = append(list, transition{
			input: "move_" + identifier(r.Input.String()),
			state: "V_" + identifier(r.State.String()), next: "V_" + identifier(r.Next.String()),
			with: int(r.With), without: int(r.Without), keep: 15 &^ int(r.Clear), set: int(r.Set),
			results: fmt.Sprintf("reply = %d; puts = %d; news = %d", r.Reply, r.Puts, r.Sends), text: r.String(),
			unnamed: "reply = Y_never; puts = 0; news = 0", parameters: "s, m, reply, puts, news",
		})
	}
	inlines(&b, list)
	return b.String()
}

// guard is the condition under which a transition fits.
func (t transition) guard() string {
	g := "s == " + t.state
	if t.with != 0 {
		g += fmt.Sprintf(" && (m & %d) == %d", t.with, t.with)
	}
	if t.without != 0 {
		g += fmt.Sprintf(" && (m & %d) == 0", t.without)
	}
	return g
}

// inlines writes transitions, those of one input together.
func inlines(b *strings.Builder, list []transition) {
	seen := map[string]bool{}
	for _, first := range list {
		if seen[first.input] {
			continue
		}
		seen[first.input] = true
		var guards []string
		fmt.Fprintf(b, "\ninline %s(%s) {\n\tif\n", first.input, first.parameters)
		for _, t := range list {
			if t.input != first.input {
				continue
			}
			guards = append(guards, "("+strings.NewReplacer("s ==", "(s) ==", "(m &", "((m) &").Replace(t.guard())+")")
			fmt.Fprintf(b, "\t:: %s -> m = (m & %d) | %d; s = %s; %s /* %s */\n", t.guard(), t.keep, t.set, t.next, t.results, t.text)
		}
		fmt.Fprintf(b, "\t:: else -> %s\n\tfi\n}\n#define may_%s(s, m) (%s)\n", first.unnamed, first.input, strings.Join(guards, " || "))
	}
}

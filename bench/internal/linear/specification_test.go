package linear

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// where is a channel between a start of its process and its end.
type where struct{ round, channel int }

func (w where) String() string { return fmt.Sprintf("channel %d of round %d", w.channel, w.round) }

// call is a call on a channel, or a case of one of Select.
type call struct {
	where
	send   uint64 // the message; 0: a receive
	choice bool   // of Select
}

// outcome is what a call had. That of a call that was taken back, or of a case that was not chosen, is
// empty.
type outcome struct {
	message uint64 // sent or received
	lost    bool   // with the device: nobody knows whether the call took effect
}

// echo is the specification of one channel: a process that reads a message and writes it back before it
// reads the next. Its state is the message that it has, 0 for none.
var echo = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{uint64(0)} },
	Step: func(state, input, output any) []any {
		held, in, out := state.(uint64), input.(call), output.(outcome)
		after := in.send // if it took effect
		can := in.send != 0 && held == 0 || in.send == 0 && held != 0 && (out.lost || held == out.message)
		switch {
		case out.lost && can:
			return []any{held, after}
		case out == outcome{} || out.lost:
			return []any{held}
		case can:
			return []any{after}
		}
		return nil
	},
}).ToModel()

// split sorts the calls by channel: what another channel does changes nothing.
func split(history []porcupine.Operation) map[where][]porcupine.Operation {
	parts := map[where][]porcupine.Operation{}
	for _, o := range history {
		w := o.Input.(call).where
		parts[w] = append(parts[w], o)
	}
	return parts
}

// legal reports whether there is an order of the calls, within their times, that the specification has.
// It panics if porcupine finds no answer in minutes.
func legal(history []porcupine.Operation) bool {
	// A call without an effect may be anywhere.
	effects := slices.DeleteFunc(slices.Clone(history), func(o porcupine.Operation) bool { return o.Output == outcome{} })
	switch porcupine.CheckOperationsTimeout(echo, effects, 5*time.Minute) {
	case porcupine.Ok:
		return true
	case porcupine.Illegal:
		return false
	}
	panic("porcupine has no answer")
}

// refused returns nil for a legal history, and of another one the calls of as few messages that are
// refused by themselves.
//
// A legal history is legal without all calls of any message. So all that holds a refused one is
// refused, and the last message of the shortest beginning that is refused is part of each fault in it.
// A receive that was lost stays, as nobody knows its message, unless it began when the others were over.
func refused(history []porcupine.Operation) []porcupine.Operation {
	if legal(history) {
		return nil
	}
	var fault []porcupine.Operation
	calls := map[uint64][]porcupine.Operation{} // by message
	var messages []uint64
	history = slices.Clone(history)
	slices.SortStableFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range history {
		m := max(o.Input.(call).send, o.Output.(outcome).message)
		switch {
		case m != 0:
			if calls[m] == nil {
				messages = append(messages, m)
			}
			calls[m] = append(calls[m], o)
		case o.Output.(outcome).lost:
			fault = append(fault, o)
		}
	}
	for legal(fault) {
		with := func(n int) []porcupine.Operation {
			all := slices.Clone(fault)
			for _, m := range messages[:n] {
				all = append(all, calls[m]...)
			}
			return all
		}
		n := sort.Search(len(messages), func(n int) bool { return !legal(with(n)) })
		fault = append(fault, calls[messages[n-1]]...)
		messages = messages[:n-1]
	}
	return withoutLate(fault)
}

// withoutLate leaves out the receives that were lost and that began when all else was over.
func withoutLate(fault []porcupine.Operation) []porcupine.Operation {
	isLost := func(o porcupine.Operation) bool { return o.Output.(outcome).lost && o.Input.(call).send == 0 }
	var over int64
	for _, o := range fault {
		if !isLost(o) {
			over = max(over, o.Return)
		}
	}
	return slices.DeleteFunc(fault, func(o porcupine.Operation) bool { return isLost(o) && o.Call > over })
}

// describeCall returns a call as describe prints it.
func describeCall(o porcupine.Operation) string {
	in, out := o.Input.(call), o.Output.(outcome)
	text := "receive()"
	if in.send != 0 {
		text = fmt.Sprintf("send(%d)", in.send)
	}
	if in.choice {
		text = "select " + text
	}
	switch {
	case out.lost:
		return text + " lost"
	case out.message == 0:
		return text + " without effect"
	case in.send == 0:
		return fmt.Sprintf("%s = %d", text, out.message)
	}
	return text
}

// describe prints a fault of a history: a line for each call, with the time that it took, as far as
// that overlaps others.
func describe(history, fault []porcupine.Operation) string {
	fault = slices.Clone(fault)
	slices.SortStableFunc(fault, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var times []int64
	for _, o := range fault {
		times = append(times, o.Call, o.Return)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	var text strings.Builder
	fmt.Fprintf(&text, "no order of these %d of %d calls, within their times, is that of a process that echoes:\n", len(fault), len(history))
	for _, o := range fault {
		from, _ := slices.BinarySearch(times, o.Call)
		to, _ := slices.BinarySearch(times, o.Return)
		bar := strings.Repeat(" ", 2*from) + "|" + strings.Repeat("-", 2*(to-from)) + "|"
		fmt.Fprintf(&text, "caller %2d  %-*s %s\n", o.ClientId, 2*len(times), bar, describeCall(o))
	}
	return text.String()
}

// op makes a call on a channel, also one that was lost.
func op(send, out uint64, from, to int64) porcupine.Operation {
	result := outcome{message: out}
	if out == lost {
		result = outcome{lost: true}
	}
	return porcupine.Operation{Input: call{send: send}, Output: result, Call: from, Return: to}
}

const lost = 1 << 63

// TestSpecificationAllows: a call that was lost may have taken effect, or not.
func TestSpecificationAllows(t *testing.T) {
	for name, history := range map[string][]porcupine.Operation{
		"one is taken back":            {op(1, 1, 0, 9), op(0, 1, 2, 5), op(2, 0, 3, 6), op(0, 0, 6, 8)},
		"a lost send took effect":      {op(1, lost, 0, 9), op(0, 1, 2, 3)},
		"a lost send took none":        {op(1, lost, 0, 9), op(2, 2, 2, 3), op(0, 2, 4, 5)},
		"a lost receive took effect":   {op(1, 1, 0, 1), op(0, lost, 2, 9), op(2, 2, 3, 4)},
		"a lost receive took none":     {op(1, 1, 0, 1), op(0, lost, 2, 9), op(0, 1, 3, 4)},
		"a lost receive took lost one": {op(1, lost, 0, 9), op(0, lost, 0, 9), op(2, 2, 2, 3), op(0, 2, 4, 5)},
	} {
		require.Nil(t, refused(history), name)
	}
}

// TestSpecificationRefuses: what a channel must not do is no history of the specification.
func TestSpecificationRefuses(t *testing.T) {
	for name, history := range map[string][]porcupine.Operation{
		"a message comes twice":           {op(1, 1, 0, 1), op(0, 1, 2, 3), op(0, 1, 4, 5)},
		"one comes that was taken back":   {op(1, 0, 0, 1), op(0, 1, 2, 3)},
		"one comes before it was sent":    {op(0, 1, 0, 1), op(1, 1, 2, 3)},
		"one is lost":                     {op(1, 1, 0, 1), op(2, 2, 2, 3), op(0, 2, 4, 5)},
		"two are held":                    {op(1, 1, 0, 1), op(2, 2, 2, 3), op(0, 1, 4, 5), op(0, 2, 6, 7)},
		"two are reordered":               {op(1, 1, 0, 1), op(2, 2, 2, 9), op(0, 2, 3, 4), op(0, 1, 5, 6)},
		"a receive returns what is there": {op(1, 1, 0, 1), op(0, 1, 2, 3), op(0, 2, 4, 5)},
		"a lost send comes twice":         {op(1, lost, 0, 9), op(0, 1, 2, 3), op(0, 1, 4, 5)},
		"a lost send comes too early":     {op(0, 1, 0, 1), op(1, lost, 2, 9)},
		"a lost receive takes two":        {op(1, 1, 0, 1), op(0, lost, 2, 9), op(2, 2, 3, 4), op(3, 3, 5, 6)},
	} {
		require.NotNil(t, refused(history), name)
	}
}

// TestFaultIsSmallAndReadable: of 500 messages two are left, and of two lost receives the one that may
// have taken either.
func TestFaultIsSmallAndReadable(t *testing.T) {
	var history []porcupine.Operation
	for i := range int64(500) {
		m, at := uint64(i+1), 10*i
		history = append(history, op(m, m, at, at+4), op(0, m, at+3, at+8), op(m+1000, 0, at, at+8))
	}
	history = slices.Delete(history, 901, 902) // the receive of message 301
	history = append(history, op(0, lost, 3015, 9000), op(0, lost, 4000, 9000))
	require.Equal(t, `no order of these 4 of 1501 calls, within their times, is that of a process that echoes:
caller  0  |--|             send(301)
caller  0      |----|       send(302)
caller  0        |------|   receive() = 302
caller  0            |----| receive() lost
`, describe(history, refused(history)))
}

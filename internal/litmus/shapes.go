package litmus

// weak are the models in which more than a store may be late.
var weak = []Model{Arm64, RISCV}

// Point is a name of the table of SYNC points, with the tests of its orders.
type Point struct {
	Name  string
	Tests []Test
}

// Points are all names of docs/protocol.md and docs/ring.md.
func Points() []Point {
	return []Point{
		{"slot", []Test{published("a slot is there once its phase shows it", "payload", "header"), copied("a slot is copied before the head lets it be written again")}},
		{"room", []Test{reused("a slot is copied before the counter lets it be written again", "slot", "counter")}},
		{"island park", []Test{parked("an island that sleeps is rung", "asleep", "slot")}},
		{"island work", []Test{parked("a slot has the owner that leaves, or a new one", "free", "slot")}},
		{"news", []Test{called("an island that took the report sees the slot", "slot"), parked("a slot is reported, or its mailbox is looked at once more", "watched", "slot")}},
		{"island owner", []Test{published("a new owner sees what the last one wrote", "state", "owner")}},
		{"channel park", []Test{parked("a host that sleeps is interrupted", "park", "slot")}},
		{"joint", []Test{called("an island that was called already sees the slot", "slot")}},
		{"stop", []Test{called("an island that was called already sees the process that stops", "process")}},
		{"relay", []Test{called("an island that was called already sees the event", "event")}},
		{"wire", []Test{published("a word is there once the tail shows it", "word", "tail")}},
		{"pump", []Test{parked("a side of a wire that waits is woken", "waits", "tail")}},
		{"state", []Test{published("the HELLO is there once the state is READY", "hello", "state")}},
		{"heartbeat", []Test{beatBegins("a beat that is read while it is written is read again"), published("a beat is whole once its header is there", "beat", "header")}},
		{"process name", []Test{published("a name is there once the number is", "name", "number")}},
		{"lock", []Test{published("a new holder sees what the last one wrote", "state", "lock")}},
		{"dma claim", []Test{published("a piece is there once it can be claimed", "piece", "claim")}},
		{"dma open", []Test{published("a transfer is there once it is open", "transfer", "open")}},
		{"dma done", []Test{published("the bytes are there once the piece is done", "bytes", "done")}},
		{"ring position", []Test{published("a packet is there once the position shows it", "packet", "writer"), reused("a packet is read before its room is given back", "packet", "reader")}},
		{"ring park", []Test{parked("a side of a ring that sleeps is woken", "parked", "position")}},
	}
}

// published is data that a thread stores before the word that shows it.
func published(name, data, word string) Test {
	return Test{Name: name, Threads: func(w With) [][]Access {
		return [][]Access{
			{{Store: true, Word: data, Value: 1}, {Store: true, Word: word, Value: 1, Rel: w.Rel}},
			{{Word: word, Into: word, Acq: w.Acq}, {Word: data, Into: "the " + data}},
		}
	}, Bad: text(map[string]int{word: 1, "the " + data: 0}), Drop: map[string][]Model{"": nil, "release": weak, "acquire": weak}}
}

// reused is data that a thread reads before the word that lets it be written again. The branch on
// that word is enough for the store that follows.
func reused(name, data, word string) Test {
	return Test{Name: name, Threads: func(w With) [][]Access {
		return [][]Access{
			{{Word: data, Into: "the " + data}, {Store: true, Word: word, Value: 1, Rel: w.Rel}},
			{{Word: word, Into: word, Acq: w.Acq}, {Store: true, Word: data, Value: 2, AfterABranch: true}},
		}
	}, Bad: text(map[string]int{word: 1, "the " + data: 2}), Drop: map[string][]Model{"": nil, "release": weak, "acquire": nil}}
}

// copied is reused with a fence, as a kernel has: its counter may be a register, whose store does
// not release.
func copied(name string) Test {
	return Test{Name: name, Threads: func(w With) [][]Access {
		return [][]Access{
			Between(w.Fence, Access{Word: "payload", Into: "copy"}, Access{Store: true, Word: "head", Value: 1}),
			{{Word: "head", Into: "room", Acq: w.Acq}, {Store: true, Word: "payload", Value: 2, AfterABranch: true}},
		}
	}, Bad: "copy=2 room=1", Drop: map[string][]Model{"": nil, "fence": weak, "acquire": nil}}
}

// parked is a side that announces its sleep and checks once more, and a side that stores the word
// it checks.
func parked(name, sleeps, stores string) Test {
	return Test{Name: name, Threads: func(w With) [][]Access {
		return [][]Access{
			Between(w.Fence, Access{Store: true, Word: sleeps, Value: 1}, Access{Word: stores, Into: stores, Acq: w.Acq}),
			Between(w.Fence, Access{Store: true, Word: stores, Value: 1, Rel: w.Rel}, Access{Word: sleeps, Into: sleeps, Acq: w.Acq}),
		}
	}, Bad: text(map[string]int{sleeps: 0, stores: 0}), Drop: map[string][]Model{"": nil, "fence": {X86, Arm64, RISCV}}}
}

// called is a side that stores data and exchanges a word, and another that exchanges the word and then
// loads the data. The word is 0 if the second side has a call that it did not see yet.
func called(name, data string) Test {
	return Test{Name: name, Threads: func(w With) [][]Access {
		return [][]Access{
			{{Store: true, Word: data, Value: 1}, {Swap: true, Word: "idle", Into: "idle", Rel: w.Rel, Acq: w.Acq}},
			{{Swap: true, Word: "idle", Value: 1, Into: "before", Rel: w.Rel, Acq: w.Acq}, {Word: data, Into: data}},
		}
	}, Bad: text(map[string]int{"before": 0, data: 0, "idle": 0}), Drop: map[string][]Model{"": nil, "release": weak, "acquire": weak}}
}

// beatBegins is a writer that takes the header away before it writes, and a reader that loads the
// header before and after what it copies.
func beatBegins(name string) Test {
	return Test{Name: name, Threads: func(w With) [][]Access {
		return [][]Access{
			Between(w.Fence, Access{Store: true, Word: "header", Value: 9}, Access{Store: true, Word: "beat", Value: 1}),
			{{Word: "header", Into: "first", Acq: w.Acq}, {Word: "beat", Into: "copy", Acq: w.Acq}, {Word: "header", Into: "second"}},
		}
	}, Bad: "copy=1 first=0 second=0", Drop: map[string][]Model{"": nil, "fence": weak, "acquire": weak}}
}

package scripted

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"sync"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

// programs are those of the conformance suite, see Run.
var programs = map[string]program{
	"loopback": loopback, "hold": (*process).park, "sink": sink, "source": source,
	"gate": gate, "expect": expect, "asked": asked,
}

// take reads whatever the host offers next. A message is returned as it is, of
// a transfer the memory that the caller must free.
func (p *process) take(port int) (direct bool, data []byte, st abi.Status) {
	r := p.call(port, readAny, nil)
	return r.direct, r.msg, r.status
}

// loopback returns every message and transfer on the port it came from.
func loopback(p *process) {
	p.each(func(port int) {
		for !p.over() {
			direct, data, st := p.take(port)
			switch {
			case st != abi.OK:
			case direct:
				p.write(port, data)
			default:
				p.writeInd(port, data)
				p.free(data)
			}
		}
	})
}

// sink takes everything, and answers how much when asked.
func sink(p *process) {
	var mu sync.Mutex
	var messages, count, hash uint64
	p.each(func(port int) {
		for !p.over() {
			direct, data, st := p.take(port)
			if st != abi.OK {
				continue
			}
			mu.Lock()
			query := direct && bytes.HasPrefix(data, []byte(pattern.SinkQuery))
			switch {
			case query:
			case direct:
				messages++
			default:
				count += uint64(len(data))
				h := fnv.New64a()
				_, _ = h.Write(data)
				hash = h.Sum64()
				p.free(data)
			}
			reply := pattern.Words(messages, count, hash)
			mu.Unlock()
			if query {
				p.write(port, reply)
			}
		}
	})
}

// source answers {size, seed} with a transfer of the pattern.
func source(p *process) {
	p.each(func(port int) {
		for !p.over() {
			msg, st := p.read(port)
			if st != abi.OK || len(msg) != 16 {
				continue
			}
			size, seed := binary.LittleEndian.Uint64(msg), binary.LittleEndian.Uint64(msg[8:])
			mem := p.alloc(size)
			if mem == nil && size > 0 {
				continue
			}
			pattern.Fill(mem, 0, seed)
			p.writeInd(port, mem)
			p.free(mem)
		}
	})
}

// gate takes one thing from port 1 for each message on port 0.
func gate(p *process) {
	for !p.over() {
		if _, st := p.read(0); st != abi.OK {
			continue
		}
		direct, data, st := p.take(1)
		if st != abi.OK {
			continue
		}
		kind, size := uint64(1), uint64(len(data))
		if direct {
			kind = 0
		} else {
			p.free(data)
		}
		p.write(0, pattern.Words(kind, size))
	}
}

// expect reads or writes a transfer of the size it is told.
func expect(p *process) {
	for !p.over() {
		msg, st := p.read(0)
		if st != abi.OK || len(msg) != 8 {
			continue
		}
		size := binary.LittleEndian.Uint64(msg)
		out := size&pattern.ExpectWrite != 0
		size &^= pattern.ExpectWrite
		mem := p.alloc(size)
		switch {
		case mem == nil && size > 0 && out:
			st = abi.ErrRange
		case mem == nil && size > 0:
			st = p.refuseNext(1)
		case out:
			st = p.writeInd(1, mem)
		default:
			st = p.readInd(1, mem)
		}
		p.free(mem)
		p.write(0, pattern.Words(uint64(st)))
	}
}

// asked takes what port 1 has, and answers it, as it is told. A device without calls gets a question as a
// message, and its answer is one.
func asked(p *process) {
	var msg []byte
	question := false
	for !p.over() {
		order, st := p.read(0)
		if st != abi.OK || len(order) != 16 {
			continue
		}
		n := int(min(binary.LittleEndian.Uint64(order[8:]), abi.PayloadSize+1))
		result := int64(0)
		switch what := order[0]; {
		case what == 'e':
			return
		case what == 'q' || what == 'p':
			msg, st = p.read(1)
			result, question = int64(len(msg)), what == 'q' && st == abi.OK
		case n > abi.PayloadSize:
			st = abi.ErrTooLarge
		case what == 'r' && !question:
			st = abi.ErrInvalid
		default:
			question = question && what != 'r'
			st = p.write(1, append(bytes.Clone(msg), make([]byte, n)...)[:n])
		}
		if st != abi.OK {
			result = -int64(st)
		}
		p.write(0, pattern.Words(uint64(result)))
	}
}

// refuseNext refuses the next offer as out of memory.
func (p *process) refuseNext(port int) abi.Status {
	if _, _, st := p.look(port); st != abi.OK {
		return st
	}
	p.refuse(port)
	return abi.ErrNoMemory
}

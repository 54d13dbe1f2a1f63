package wire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// vector is one file of testdata: a slot as fields and as bytes. The C test
// firmware/test/golden_test.c reads the same files.
type vector struct {
	keys   []string
	fields map[string]string
	bytes  [SlotSize]byte
}

// readVector parses "key = value" lines up to a line "hex", then the bytes.
func readVector(path string) (v vector, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return v, err
	}
	head, tail, ok := strings.Cut(string(text), "\nhex\n")
	if !ok {
		return v, fmt.Errorf("%s has no line \"hex\"", path)
	}
	v.fields = map[string]string{}
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, " =")
		if !ok {
			return v, fmt.Errorf("%s: line %q is not key = value", path, line)
		}
		v.keys = append(v.keys, key)
		v.fields[key] = strings.TrimSpace(value)
	}
	raw, err := hex.DecodeString(strings.Join(strings.Fields(tail), ""))
	if err != nil || len(raw) != SlotSize {
		return v, fmt.Errorf("%s: %d bytes of hex: %v", path, len(raw), err)
	}
	v.bytes = [SlotSize]byte(raw)
	return v, nil
}

func (v vector) number(t *testing.T, key string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(v.fields[key], 0, 64)
	require.NoError(t, err, "field %q", key)
	return n
}

func slotOf(b [SlotSize]byte) (s Slot) {
	s.Header = binary.LittleEndian.Uint64(b[:])
	for i := range s.Payload {
		s.Payload[i] = binary.LittleEndian.Uint64(b[8+8*i:])
	}
	return s
}

func bytesOf(s Slot) (b [SlotSize]byte) {
	binary.LittleEndian.PutUint64(b[:], s.Header)
	for i, w := range s.Payload {
		binary.LittleEndian.PutUint64(b[8+8*i:], w)
	}
	return b
}

// payloadOf returns the view of s that a vector's payload names.
func payloadOf(s *Slot, payload string) (reflect.Value, bool) {
	views := map[string]any{
		"ack": s.Ack(), "begin": s.Begin(), "note": s.Note(), "close": s.Close(),
		"hello": s.Hello(), "heartbeat": s.Heartbeat(), "control": s.Control(),
	}
	view, ok := views[payload]
	if !ok {
		return reflect.Value{}, false
	}
	return reflect.ValueOf(view).Elem(), true
}

// headerKeys are first in every vector; the rest is the payload.
var headerKeys = []string{"type", "phase", "length", "epoch", "sequence", "channel", "payload"}

func encodeHeader(t *testing.T, v vector) uint64 {
	t.Helper()
	h := MakeHeader(Type(v.number(t, "type")), int(v.number(t, "length")), uint8(v.number(t, "epoch")),
		uint16(v.number(t, "sequence")), uint32(v.number(t, "channel")))
	return uint64(h.WithPhase(v.number(t, "phase")))
}

// encode builds the slot from the vector's fields alone.
func encode(t *testing.T, v vector) Slot {
	t.Helper()
	var s Slot
	s.Header = encodeHeader(t, v)
	switch v.fields["payload"] {
	case "bytes":
		data, err := hex.DecodeString(v.fields["data"])
		require.NoError(t, err)
		copy(s.Bytes()[:], data)
	case "eager":
		*s.Eager() = Eager{Transaction: v.number(t, "transaction"), Size: v.number(t, "size"), TimeoutNS: v.number(t, "timeout_ns")}
		encodeEntries(t, v, s.Eager().Entry[:])
	case "gather":
		encodeEntries(t, v, s.Gather().Entry[:])
		s.Gather().Tail = MakeTail(v.number(t, "outstanding"), uint16(v.number(t, "number")))
	default:
		view, ok := payloadOf(&s, v.fields["payload"])
		require.True(t, ok, "payload %q is not known", v.fields["payload"])
		for _, key := range v.keys[len(headerKeys):] {
			if key == "name" {
				copy(s.Control().Name[:], v.fields[key])
				continue
			}
			field := view.FieldByName(names.Camel(key))
			require.True(t, field.IsValid(), "no field %s", names.Camel(key))
			field.SetUint(v.number(t, key))
		}
	}
	return s
}

// encodeEntries builds the page entries of a vector, or its runs.
func encodeEntries(t *testing.T, v vector, entries []Entry) {
	t.Helper()
	for i := range int(v.number(t, "length") & ListCountMask) {
		address, length := v.number(t, fmt.Sprintf("entry%d_address", i)), v.number(t, fmt.Sprintf("entry%d_length", i))
		if v.number(t, "length")&ListRuns != 0 {
			entries[i] = MakeRun(address, int((address%abi.PageSize+length)/abi.PageSize))
		} else {
			entries[i] = MakeEntry(address, int(length))
		}
	}
}

// decodeEntries compares the entries in use with the vector's.
func decodeEntries(t *testing.T, entries []Entry, v vector) {
	t.Helper()
	for i, e := range entries[:v.number(t, "length")&ListCountMask] {
		address, length := e.Address(), uint64(e.Length())
		if v.number(t, "length")&ListRuns != 0 {
			address, length = e.RunAddress(), e.RunLength()
		}
		assert.Equal(t, v.number(t, fmt.Sprintf("entry%d_address", i)), address)
		assert.Equal(t, v.number(t, fmt.Sprintf("entry%d_length", i)), length)
	}
}

// decode compares every field of the slot with the vector's.
func decode(t *testing.T, s Slot, v vector) {
	t.Helper()
	h := Header(s.Header)
	assert.Equal(t, v.number(t, "type"), uint64(h.Type()))
	assert.Equal(t, v.number(t, "phase"), h.Phase())
	assert.Equal(t, v.number(t, "length"), uint64(h.Length()))
	assert.Equal(t, v.number(t, "epoch"), uint64(h.Epoch()))
	assert.Equal(t, v.number(t, "sequence"), uint64(h.Sequence()))
	assert.Equal(t, v.number(t, "channel"), uint64(h.Channel()))
	switch v.fields["payload"] {
	case "bytes":
		assert.Equal(t, v.fields["data"], hex.EncodeToString(s.Bytes()[:h.Length()]))
	case "eager":
		e := s.Eager()
		assert.Equal(t, v.number(t, "transaction"), e.Transaction)
		assert.Equal(t, v.number(t, "size"), e.Size)
		assert.Equal(t, v.number(t, "timeout_ns"), e.TimeoutNS)
		decodeEntries(t, e.Entry[:], v)
	case "gather":
		g := s.Gather()
		decodeEntries(t, g.Entry[:], v)
		assert.Equal(t, v.number(t, "outstanding"), g.Outstanding())
		assert.Equal(t, v.number(t, "number"), uint64(g.Number()))
	default:
		view, ok := payloadOf(&s, v.fields["payload"])
		require.True(t, ok, "payload %q is not known", v.fields["payload"])
		for _, key := range v.keys[len(headerKeys):] {
			if key == "name" {
				name, _, _ := strings.Cut(string(s.Control().Name[:]), "\x00")
				assert.Equal(t, v.fields[key], name)
				continue
			}
			assert.Equal(t, v.number(t, key), view.FieldByName(names.Camel(key)).Uint(), key)
		}
	}
}

// complete checks that a vector names every field its payload has.
func complete(t *testing.T, v vector) {
	t.Helper()
	require.GreaterOrEqual(t, len(v.keys), len(headerKeys))
	require.Equal(t, headerKeys, v.keys[:len(headerKeys)])
	view, ok := payloadOf(new(Slot), v.fields["payload"])
	if !ok {
		return
	}
	named := map[string]bool{}
	for _, key := range v.keys {
		named[names.Camel(key)] = true
	}
	for i := range view.NumField() {
		if name := view.Type().Field(i).Name; name != "_" && name != "Rsvd" {
			assert.True(t, named[name], "the vector has no %s", name)
		}
	}
}

func TestGoldenVectors(t *testing.T) {
	files, err := filepath.Glob("../../bridge/abi/testdata/*.hex")
	require.NoError(t, err)
	covered := map[Type]bool{}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".hex"), func(t *testing.T) {
			v, err := readVector(path)
			require.NoError(t, err)
			complete(t, v)
			covered[Type(v.number(t, "type"))] = true
			decode(t, slotOf(v.bytes), v)
			assert.Equal(t, v.bytes, bytesOf(encode(t, v)), "encode")
		})
	}
	for typ := TypeNone + 1; typ < TypeCount; typ++ {
		assert.True(t, covered[typ], "testdata has no vector of type %d", typ)
	}
}

// A slot is the bytes of the wire on the machines this package compiles for.
func TestSlotIsItsBytes(t *testing.T) {
	v, err := readVector("../../bridge/abi/testdata/control.hex")
	require.NoError(t, err)
	s := slotOf(v.bytes)
	assert.Equal(t, v.bytes, *(*[SlotSize]byte)(unsafe.Pointer(&s)))
}

package wire

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFramesSurvive(t *testing.T) {
	sent := []Frame{
		{Kind: Hello, Program: Job, Text: "6.1"},
		{Kind: Output, Program: 3, Data: []byte("line\n\x00\xff\n")},
		{Kind: Exit, Program: 3, Status: -1, Text: "killed"},
		{Kind: End, Program: Job},
	}
	var b bytes.Buffer
	e := NewEncoder(&b)
	for _, f := range sent {
		require.NoError(t, e.Send(f))
	}
	var got []Frame
	require.NoError(t, Decode(iotest.OneByteReader(&b), func(f Frame) { got = append(got, f) }))
	require.Equal(t, sent, got)
}

func TestSendIsConcurrent(t *testing.T) {
	var b bytes.Buffer
	e := NewEncoder(&b)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if err := e.Send(Frame{Kind: Output, Program: i, Data: bytes.Repeat([]byte{byte(i)}, 99)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	count := 0
	require.NoError(t, Decode(&b, func(f Frame) {
		count++
		require.Equal(t, bytes.Repeat([]byte{byte(f.Program)}, 99), f.Data)
	}))
	require.Equal(t, 8*50, count)
}

func TestDecodeRejects(t *testing.T) {
	for _, text := range []string{"{\"Kind\":\"hello\"", "nonsense\n", "{\"Kind\":\"out\n", "\n"} {
		frames := 0
		err := Decode(strings.NewReader("{\"Kind\":\"begin\",\"Program\":0}\n"+text), func(Frame) { frames++ })
		require.ErrorContains(t, err, "decode frame", text)
		require.Equal(t, 1, frames)
	}
	broken := errors.New("line is down")
	require.ErrorIs(t, Decode(iotest.ErrReader(broken), func(Frame) {}), broken)
}

func TestSendReportsTheLine(t *testing.T) {
	require.ErrorContains(t, NewEncoder(failing{}).Send(Frame{Kind: End}), "send frame")
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no line") }

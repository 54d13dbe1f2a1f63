package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRepeatedLinesAreCounted: of a flood of lines ten are logged, and the next has the number of the others.
func TestRepeatedLinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLines(slog.New(slog.NewTextHandler(&out, nil)), "HTTP")
		for n := range 100 {
			fmt.Fprintf(l, "no TLS %d\n", n)
		}
		require.Equal(t, 10, strings.Count(out.String(), "\n"))
		require.NotContains(t, out.String(), "no TLS 10")
		time.Sleep(time.Second)
		fmt.Fprintln(l, "no TLS 100")
		require.Contains(t, out.String(), `error="no TLS 100" more_since_last=90`)
	})
}

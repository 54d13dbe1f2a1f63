package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
	"github.com/nfcomms/nfcomms/spec"
)

// TestVerify: a log that is legal, one that is not, and files that are none.
func TestVerify(t *testing.T) {
	l := spec.Log{Window: 4, Limit: 1 << 20, Channels: 64, Mailboxes: 2, Islands: 1}
	ask := spec.Record{Slot: wire.Slot{Header: uint64(wire.MakeHeader(wire.TypeDirect, abi.PayloadSize, 1, 1, 0))}}
	l.Records = append(l.Records, ask)
	legal := writeLog(t, &l)
	l.Records = append(l.Records, ask)
	illegal := writeLog(t, &l)
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("no log"), 0o600))
	for _, c := range []struct {
		file, says string
		exit       int
	}{
		{legal, "1 slots, all legal\n", exitOK},
		{illegal, "slot 1 is illegal: h2d: no put message while offered\n", exitUnhealthy},
		{foreign, "not a log of slots: it does not begin like one", exitUsage},
		{foreign + ".not", "no such file", exitUsage},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"verify", c.file}, streams{nil, &out, &errs}, func(string) string { return "" })
		require.Equal(t, c.exit, code, "%s%s", &out, &errs)
		require.Contains(t, out.String()+errs.String(), c.says)
	}
}

// TestVerifyTrace: a trace of the kernel module, one that lacks a slot, one that lost events, and none.
func TestVerifyTrace(t *testing.T) {
	text, err := os.ReadFile("../../internal/slottrace/testdata/dev.trace")
	require.NoError(t, err)
	list := strings.SplitAfter(string(text), "\n")
	for _, c := range []struct {
		lines []string
		says  string
		exit  int
	}{
		{list, "124 slots, all legal\n", exitOK},
		{append(list[:6:6], list[5:]...), "line 7, slot 1 of an epoch of device 1, is illegal: h2d: no put message while offered\n", exitUnhealthy},
		{list[5:], "incomplete: ", exitUnhealthy},
		{list[:4], "not a trace of slots: it has none of", exitUsage},
	} {
		name := filepath.Join(t.TempDir(), "trace")
		require.NoError(t, os.WriteFile(name, []byte(strings.Join(c.lines, "")), 0o600))
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"verify", "--trace", name}, streams{nil, &out, &errs}, func(string) string { return "" })
		require.Equal(t, c.exit, code, "%s%s", &out, &errs)
		require.Contains(t, out.String()+errs.String(), c.says)
	}
}

// writeLog writes a log to a file.
func writeLog(t *testing.T, l *spec.Log) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	_, err = l.WriteTo(f)
	require.NoError(t, err)
	return f.Name()
}

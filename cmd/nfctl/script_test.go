package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"
)

// update: write wanted output and generated documentation anew.
var update = flag.Bool("update", false, "write what the tests want from what they get")

// TestScripts runs the scripts of testdata/script against real servers and
// devices.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values[hostKey{}] = new(hostHolder)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server":     cmdServer,
			"stopserver": cmdStopServer,
			"asleep":     cmdSleeping,
			"until":      cmdUntil,
			"exits":      cmdExits,
			"normal":     cmdNormal,
			"keys":       cmdKeys,
			"image":      cmdImage,
		},
	})
}

// hostKey finds the script's hostHolder, which holds its server.
type hostKey struct{}

type hostHolder struct{ host *host }

func holderOf(ts *testscript.TestScript) *hostHolder { return ts.Value(hostKey{}).(*hostHolder) }

// cmdServer starts a server: "server [-role ROLE | -members N] NAME=ADDRESS…". The script
// reaches it through NFCTL_ADDRESS.
func cmdServer(ts *testscript.TestScript, _ bool, args []string) {
	o := hostOptions{devices: args}
	if len(args) > 1 && args[0] == "-role" {
		o.role, o.devices = args[1], args[2:]
	}
	if len(args) > 1 && args[0] == "-members" {
		var err error
		o.members, err = strconv.Atoi(args[1])
		ts.Check(err)
		o.devices = args[2:]
	}
	path := filepath.Join(ts.Getenv("TMPDIR"), "s")
	h, err := newHost(context.Background(), path, o)
	ts.Check(err)
	holderOf(ts).host = h
	ts.Setenv("NFCTL_ADDRESS", "unix:"+path)
	ts.Defer(func() { cmdStopServer(ts, false, nil) })
}

// cmdStopServer stops the server, if it runs.
func cmdStopServer(ts *testscript.TestScript, _ bool, _ []string) {
	holder := holderOf(ts)
	if holder.host != nil {
		ts.Check(holder.host.stop())
		holder.host = nil
	}
}

// cmdSleeping waits until a call sleeps in a device of the server.
func cmdSleeping(ts *testscript.TestScript, _ bool, _ []string) {
	for begin := time.Now(); time.Since(begin) < watchdog; time.Sleep(time.Millisecond) {
		for _, dev := range holderOf(ts).host.srv.Devices() {
			if dev.Stats().Blocked > 0 {
				return
			}
		}
	}
	ts.Fatalf("no call sleeps")
}

// cmdUntil repeats a command until its standard output matches: "until REGEXP nfctl …". A command that
// measures for a time finds nothing where it had no processor.
func cmdUntil(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile(args[0])
	for begin := time.Now(); time.Since(begin) < watchdog; {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("no match for %q", args[0])
}

// cmdExits runs a command line and checks how it ends: "exits NAME nfctl …",
// with NAME from the table of exit codes. One that fails writes one line to the
// standard error, and that begins with "nfctl: ".
func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	want, ok := exitNamed(args[0])
	if !ok {
		ts.Fatalf("no exit code is called %q", args[0])
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d (%s)", got, want, args[0])
	}
	if text := ts.ReadFile("stderr"); want != exitOK && (strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "nfctl: ")) {
		ts.Fatalf("standard error %q, want one line", text)
	}
}

// varying is what differs from run to run, and what stands for it.
var varying = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`(?m) +[\d.]+ ?(ns|µs|ms|s)\b( ago)?`), " DURATION$2"},
	{regexp.MustCompile(` +STEP +WAITING`), " STEP WAITING"},
	{regexp.MustCompile(`opens [a-z, -]+`), "opens SCHEMES"},
	{regexp.MustCompile(`kernel module.*`), "kernel module MODULE"},
	{regexp.MustCompile(`go1\.[\w.]+`), "GO"},
	{regexp.MustCompile(`\(devel\)|v\d\S*`), "VERSION"},
	{regexp.MustCompile(`, commit [0-9a-f]+`), ""},
	{regexp.MustCompile(`heartbeat: +\d+, `), "heartbeat: BEAT, "},
	{regexp.MustCompile(`\d+ to the device, \d+ from it, \d+ of`), "N to the device, N from it, N of"},
	{regexp.MustCompile(` +(none|DURATION)( |$)`), " $1$2"},
	{regexp.MustCompile(`device \d+, from it \d+ of \d+ slots`), "device N, from it N of N slots"},
	{regexp.MustCompile(`\d+ processes, \d+ messages taken`), "N processes, N messages taken"},
	{regexp.MustCompile(`\d+ queued`), "N queued"}, // of the heartbeat: a service may just have offered
	{regexp.MustCompile(` +HEARTBEAT`), " HEARTBEAT"},
	{regexp.MustCompile(` +VERSION +ABI`), " VERSION ABI"},
	{regexp.MustCompile(` +VERSION +(\d)`), " VERSION $1"},
	{regexp.MustCompile(`( +(MIN|MEAN|P50|P90|P99|P99.9|MAX))+\n`), " PERCENTILES\n"},
	{regexp.MustCompile(`( DURATION){7}`), " DURATIONS"},
}

// cmdNormal writes what a command wrote, with fixed words for what varies:
// "normal stdout FILE".
func cmdNormal(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "WORK")
	for _, v := range varying {
		text = v.re.ReplaceAllString(text, v.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// cmdKeys holds JSON or YAML to the documented keys: "keys COMMAND stdout".
func cmdKeys(ts *testscript.TestScript, _ bool, args []string) {
	r, ok := outputs[args[0]]
	if !ok {
		ts.Fatalf("no command %q", args[0])
	}
	documents := 0
	err := eachDocument(ts.ReadFile(args[1]), func(doc any) {
		documents++
		for _, wrong := range deviations("", doc, r) {
			ts.Logf("%s", wrong)
			defer ts.Fatalf("the output of %s is not as documented", args[0])
		}
	})
	ts.Check(err)
	if documents == 0 {
		ts.Fatalf("no document")
	}
}

// eachDocument decodes a series of JSON or YAML documents.
func eachDocument(text string, do func(doc any)) error {
	var decode func(any) error
	if strings.HasPrefix(text, "{") {
		decode = json.NewDecoder(strings.NewReader(text)).Decode
	} else {
		decode = yaml.NewDecoder(strings.NewReader(text)).Decode
	}
	for {
		var doc any
		switch err := decode(&doc); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w in %s", err, text)
		}
		do(doc)
	}
}

// cmdImage builds the example's device program: "image FILE".
func cmdImage(ts *testscript.TestScript, _ bool, args []string) {
	root := filepath.Join("..", "..")
	out, err := exec.Command("gcc", "-std=c11", "-O2", "-shared", "-fPIC", "-DNFC_PROGRAM_SHARED", "-I"+filepath.Join(root, "firmware"),
		"-o", ts.MkAbs(args[0]), filepath.Join(root, "examples", "program", "device", "checksum.c")).CombinedOutput()
	if err != nil {
		ts.Fatalf("gcc (install it with: apt-get install gcc): %v: %s", err, out)
	}
}

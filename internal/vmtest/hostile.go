//go:build linux

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Kinds of misbehaviour by what comes of them, as nfsim --help describes them.
var (
	// reaching kinds access memory that is not the device's: only an IOMMU helps.
	reaching = []string{"overreach", "wild", "late"}
	// corrupting kinds may change bytes that the device was given, and nothing else.
	corrupting = append([]string{"flip", "random", "garbage", "scribble"}, reaching...)
)

// leaving are kinds whose device loses the right to DMA once it has struck, in the
// middle of a transfer as well.
var leaving = []string{"gone", "fake-removal", "stale"}

// does reports whether a script names one of some kinds.
func does(script string, kinds ...string) bool {
	for entry := range strings.SplitSeq(script, ",") {
		for _, kind := range kinds {
			if rest, ok := strings.CutPrefix(entry, kind); ok && (rest == "" || strings.ContainsAny(rest[:1], "@+:")) {
				return true
			}
		}
	}
	return false
}

// deviceEnv tells a guest's program which of the devices it talks to, and what
// to expect of its script.
func deviceEnv(i int, script string) []string {
	env := []string{fmt.Sprintf("NFC_NODE=/dev/nfcomms%d", i)}
	if script == "" {
		return env
	}
	env = append(env, "NFC_SCRIPT="+script)
	if does(script, corrupting...) {
		env = append(env, "NFC_CORRUPTS=1")
	}
	for kind, what := range showsIn {
		if does(script, kind) && !strings.Contains(script, ",") {
			env = append(env, "NFC_EXPECT="+what)
		}
	}
	return env
}

// showsIn says by what the driver shows that it saw a lie of a kind. A transfer that is done too early
// ends in a fault even where that is believed, by what the device says of it later.
var showsIn = map[string]string{
	"epoch": "dropped", "count": "faults", "early": "done, but not all was moved", "type": "faults", "state": "faults", "fake-removal": "no master",
}

// diedByScript is the exit status of a device that ends as its script says.
const diedByScript = 3

// dieAsSaid returns how a device ended whose script makes it die: nil if it did.
func dieAsSaid(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == diedByScript {
		return nil
	}
	return fmt.Errorf("the device did not die by its script: %w", errors.Join(err))
}

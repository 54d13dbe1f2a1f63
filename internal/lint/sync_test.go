package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	syncPoint = regexp.MustCompile(`SYNC: ([a-z]+(?: [a-z]+)*(?:, [a-z]+(?: [a-z]+)*)*)`)
	syncName  = regexp.MustCompile(`\*SYNC: ([a-z ]+)\*`)
)

// lonely lists barriers that name no partner: each name stands at both ends,
// and those of the protocol stand on the host and in the firmware.
func lonely(protocol string, files []*file) []string {
	places := make(map[string][]string)
	for _, f := range files {
		for _, m := range syncPoint.FindAllStringSubmatch(f.text, -1) {
			for _, name := range strings.Split(m[1], ", ") {
				places[name] = append(places[name], f.dir())
			}
		}
	}
	var found []string
	for name, at := range places {
		if len(at) < 2 {
			found = append(found, fmt.Sprintf("%s: SYNC: %s stands at one end only", at[0], name))
		}
	}
	for _, m := range syncName.FindAllStringSubmatch(protocol, -1) {
		for _, side := range []string{"bridge/mailbox", "firmware"} {
			if !slices.Contains(places[m[1]], side) {
				found = append(found, fmt.Sprintf("%s: SYNC: %s of the protocol is missing", side, m[1]))
			}
		}
	}
	return found
}

func TestBarriersHavePartners(t *testing.T) {
	var files []*file
	for _, f := range tree(t, ".go", ".c", ".h") {
		if f.dir() != "internal/lint" {
			files = append(files, f)
		}
	}
	report(t, lonely(read(t, "../..", "docs/protocol.md").text, files))
}

func TestLonelyFinds(t *testing.T) {
	host := &file{path: "bridge/mailbox/a.go", text: "x // SYNC: slot, park word"}
	device := &file{path: "firmware/a.c", text: "/* SYNC: slot */\n/* SYNC: park word. Must */"}
	report(t, lonely("*SYNC: slot*", []*file{host, device}))
	wantOne(t, lonely("", []*file{{path: "firmware/b.c", text: "/* SYNC: alone */"}}), "alone")
	wantOne(t, lonely("*SYNC: bell*", []*file{host, device, {path: "firmware/c.c", text: "SYNC: bell SYNC: bell"}}), "bridge/mailbox")
}

package owners

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// mostGroup bounds the name of a control group, and mostLines the file that has it.
const (
	mostGroup = 256
	mostLines = 16 << 10
)

// unit matches a control group as far as the pod, the unit of systemd or the container. Processes in
// these may have the right to make groups of their own below.
var unit = regexp.MustCompile(`^/(?:[^/]+/)*?(?:[^/]*pod[0-9a-f]{8}[-_][^/]*|[^/]*\.(?:service|scope))(?:/|$)`)

// GroupOf names the control group of a process: its pod, unit or container. Empty if it is unknown,
// as for a process that ended or that this one may not see.
func GroupOf(pid int32) string {
	if pid <= 0 {
		return ""
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	defer file.Close()
	text := make([]byte, mostLines)
	n, _ := file.Read(text) // nothing is as good as no group
	return groupIn(string(text[:n]))
}

// groupIn reads the group from lines "number:controllers:path" of cgroups(7): that of the unified
// hierarchy, or of systemd's own.
func groupIn(text string) string {
	for _, line := range strings.Split(text, "\n") {
		field := strings.SplitN(line, ":", 3)
		if len(field) < 3 || field[1] != "" && field[1] != "name=systemd" || field[2] == "/" {
			continue
		}
		path := unit.FindString(field[2])
		if path == "" {
			parts := strings.SplitAfterN(field[2], "/", 5)
			path = strings.Join(parts[:min(len(parts), 4)], "") // "/docker/ID", "/kubepods/besteffort/ID"
		}
		return strings.TrimSuffix(path[:min(len(path), mostGroup)], "/")
	}
	return ""
}

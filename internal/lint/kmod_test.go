package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	attribute  = regexp.MustCompile(`&dev_attr_(\w+)\.attr`)
	described  = regexp.MustCompile(`(?m)^What:\s+/sys/class/nfcomms/nfcommsN/(\w+)$`)
	parameter  = regexp.MustCompile(`module_param_named\((\w+),`)
	parameters = regexp.MustCompile(`MODULE_PARM_DESC\((\w+),`)
	event      = regexp.MustCompile(`(?:TRACE_EVENT|DEFINE_EVENT)\((?:nfcomms_slot, )?(\w+),`)
	exported   = regexp.MustCompile(`^(?:const )?(?:struct |enum |unsigned )?\w+ \*?(nfcm_\w+)\([^;]*$`)
)

// names returns what the group of an expression matches, sorted.
func names(re *regexp.Regexp, text string) []string {
	var list []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return list
}

// unnamed lists the words that do not stand in a text between back quotes.
func unnamed(words []string, text string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.Contains(text, "`"+w+"`") })
}

// uncommented lists the functions of a C source that other sources use and that
// no comment stands above.
func uncommented(f *file) []string {
	var found []string
	lines := strings.Split(f.text, "\n")
	for i, line := range lines {
		m := exported.FindStringSubmatch(line)
		if m == nil || i > 0 && strings.HasSuffix(lines[i-1], "*/") {
			continue
		}
		found = append(found, fmt.Sprintf("%s:%d: %s: say what it does, who owns what and which locks it wants", f.path, i+1, m[1]))
	}
	return found
}

// TestModuleIsDescribed: what the kernel module shows and takes stands where a
// user looks for it.
func TestModuleIsDescribed(t *testing.T) {
	read := func(name string) string {
		text, ok := openTree(name)
		if !ok || text == "" {
			t.Fatalf("%s is missing", name)
		}
		return text
	}
	page := read("docs/kernel-module.md")
	attributes := names(attribute, read("kmod/nfcm_sysfs.c"))
	// The link to the PCI function is the driver core's.
	abi := slices.DeleteFunc(names(described, read("kmod/Documentation/ABI/testing/sysfs-class-nfcomms")), func(s string) bool { return s == "device" })
	if len(attributes) == 0 || !slices.Equal(attributes, abi) {
		t.Errorf("sysfs attributes %v, described %v", attributes, abi)
	}
	params := names(parameter, read("kmod/nfcm_main.c"))
	if told := names(parameters, read("kmod/nfcm_main.c")); len(params) == 0 || !slices.Equal(params, told) {
		t.Errorf("parameters %v, for modinfo %v", params, told)
	}
	events := names(event, read("kmod/trace.h"))
	if len(events) < 8 {
		t.Errorf("tracepoints: found only %v", events)
	}
	for what, list := range map[string][]string{"attributes": attributes, "parameters": params, "tracepoints": events} {
		if missing := unnamed(list, page); len(missing) > 0 {
			t.Errorf("docs/kernel-module.md does not name the %s %v", what, missing)
		}
	}
}

func TestModuleFunctionsAreCommented(t *testing.T) {
	for _, f := range tree(t, ".c") {
		if f.dir() == "kmod" || f.dir() == "kmod/core" {
			report(t, uncommented(f))
		}
	}
	bad := &file{path: "kmod/x.c", text: "/* Fine. */\nvoid nfcm_a(void)\n{\n}\n\nstruct nfcm_b *nfcm_c(struct nfcm_b *b,\n\t\tint n)\n{\n}\n\nstatic int nfcm_d(void)\n{\n}\n"}
	if got := uncommented(bad); len(got) != 1 || !strings.Contains(got[0], "nfcm_c") {
		t.Errorf("found %v", got)
	}
}

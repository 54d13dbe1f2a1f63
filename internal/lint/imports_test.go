package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sys is for back ends alone, and for their tests.
const sys = "golang.org/x/sys"

// allowed says which packages of this module, and which outside the standard
// library, a folder may import; the longest prefix decides. Tests may import
// what they like, but for "C" and "unsafe".
var allowed = []struct {
	dir     string   // ends with "/" when everything below is meant
	own     []string // folders; "x/" means everything below x
	outside []string // module prefixes
}{
	{"", nil, nil},
	{"bridge/abi", nil, nil},
	{"bridge", []string{"bridge/abi", "internal/units"}, nil},
	{"internal/wire", []string{"bridge/abi"}, nil},
	{"internal/proto", []string{"bridge/abi", "internal/wire"}, nil},
	{"internal/proto/talk", []string{"bridge/abi", "internal/wire", "internal/proto"}, nil},
	{"spec", []string{"bridge/abi", "internal/wire", "internal/proto", "internal/proto/talk"}, nil},
	{"spec/internal/refine", nil, nil},
	{"spec/internal/search", []string{"bridge/abi", "internal/wire", "internal/proto"}, nil},
	{"internal/slottrace", []string{"spec"}, nil},
	{"internal/spectest", []string{"bridge", "bridge/mailbox", "spec"}, nil},
	{"spec/speccheck", []string{"internal/proto", "spec/internal/search"}, nil},
	{"internal/licenses", nil, nil},
	{"internal/meter", []string{"bridge", "bridge/abi"}, nil},
	{"internal/stamp", []string{"bridge/abi", "internal/wire", "internal/meter"}, []string{sys}},
	{"internal/waiter", nil, nil},
	{"internal/region", []string{"bridge", "bridge/abi"}, nil},
	{"internal/logqueue", nil, nil},
	{"bridge/mailbox", []string{"bridge", "bridge/abi", "internal/wire", "internal/logqueue", "internal/meter", "internal/proto", "internal/region", "internal/stamp", "internal/waiter", "internal/fault"}, []string{sys}},
	{"internal/sim", []string{"internal/arena", "bridge", "bridge/abi", "internal/wire", "internal/logqueue", "bridge/mailbox", "internal/mesh", "internal/nodes", "internal/region", "internal/firmware"}, []string{sys}},
	{"internal/mesh", []string{"bridge", "bridge/abi", "internal/firmware"}, nil},
	{"internal/mesh/udp", []string{"bridge", "internal/mesh"}, []string{"github.com/quic-go/quic-go", "golang.org/x/net/ipv4", sys}},
	{"internal/mesh/service", []string{"bridge", "internal/mesh"}, nil},
	{"internal/nodes", []string{"bridge", "bridge/abi"}, nil},
	{"internal/arena", []string{"bridge", "bridge/abi", "internal/wire", "internal/fault", "internal/logqueue", "internal/shmwire"}, []string{sys}},
	{"internal/shm", []string{"bridge", "bridge/abi", "internal/wire", "internal/arena", "internal/logqueue", "bridge/mailbox", "internal/nodes", "internal/region", "internal/fault", "internal/fdpass", "internal/shmwire"}, []string{sys}},
	{"internal/vfio", []string{"internal/shape", "bridge", "bridge/abi", "internal/wire", "internal/arena", "internal/logqueue", "bridge/mailbox", "internal/region", "internal/fault", "internal/fdpass", "internal/pci", "internal/shmwire"}, []string{sys}},
	{"internal/kdev", []string{"internal/shape", "bridge", "bridge/abi", "internal/wire", "internal/kdev/debugapi", "internal/kdev/uapi", "internal/logqueue", "internal/meter", "internal/region", "internal/stamp", "internal/waiter"}, []string{sys}},
	{"internal/shape", []string{"bridge", "bridge/abi", "internal/wire"}, nil},
	{"internal/kdev/debugapi", nil, nil},
	{"internal/kdev/uapi", nil, nil},
	{"internal/kdev/umod", []string{"bridge", "bridge/abi", "internal/wire", "internal/kdev/uapi", "internal/region", "internal/stamp"}, []string{sys}},
	{"bridge/bridgetest", []string{"internal/bridgetest", "internal/subprocess"}, []string{"github.com/stretchr/testify"}},
	{"internal/bridgetest", []string{"bridge", "bridge/abi", "internal/wire", "internal/pattern", "internal/stamp"}, []string{sys, "github.com/stretchr/testify", "go.uber.org/goleak", "pgregory.net/rapid"}},
	{"internal/pattern", nil, nil},
	{"bridge/bridgetest/testdata/card", []string{"bridge", "bridge/abi", "bridge/mailbox"}, nil},
	{"internal/scripted", []string{"bridge/abi", "internal/wire", "internal/pattern", "internal/proto/talk", "internal/units"}, []string{sys}},
	{"firmware", nil, nil},
	{"internal/firmware", []string{"bridge", "bridge/abi", "internal/model", "internal/wire", "firmware"}, nil},
	{"pkg/", []string{"pkg/", "bridge", "bridge/abi"}, nil},
	{"pkg/control/", []string{"internal/topology", "pkg/group", "pkg/nfcomms", "pkg/control/", "bridge", "bridge/abi", "internal/fdpass", "pkg/nfcomms/"}, []string{"google.golang.org/"}},
	{"pkg/control/access", []string{"pkg/control/proto/", "pkg/control/internal/surge", "internal/fdpass", "internal/owners"}, []string{"golang.org/x/time/rate", "google.golang.org/"}},
	{"pkg/nfcomms/internal/over", []string{"bridge", "bridge/abi", "internal/stamp"}, nil},
	{"pkg/nfcomms/fabric", []string{"bridge", "bridge/abi", "pkg/nfcomms", "pkg/nfcomms/internal/over"}, nil},
	{"pkg/nfcomms/admin", []string{"bridge", "bridge/abi", "pkg/nfcomms", "pkg/nfcomms/internal/over"}, nil},
	{"pkg/nfcomms/pool", []string{"pkg/nfcomms"}, nil},
	{"pkg/nfcomms/rings", []string{"bridge", "pkg/nfcomms", "pkg/nfcomms/internal/over", "pkg/ring"}, nil},
	{"pkg/nfcomms/trace", []string{"internal/stamp", "pkg/nfcomms", "pkg/nfcomms/internal/over"}, nil},
	{"pkg/nfcomms", []string{"bridge", "bridge/abi", "internal/meter", "internal/region", "internal/stamp", "internal/fault", "pkg/nfcomms/internal/over"}, nil},
	{"pkg/group", []string{"internal/model", "pkg/ring", "internal/fault"}, nil},
	{"internal/model", nil, nil},
	{"internal/topology", []string{"bridge", "bridge/abi"}, []string{"go.yaml.in/yaml"}},
	{"pkg/program", []string{"firmware", "internal/subprocess"}, nil},
	{"pkg/ring", []string{"internal/fault", "internal/fdpass"}, []string{sys}},
	{"pkg/metrics", []string{"internal/topology", "pkg/group", "pkg/nfcomms", "pkg/ring", "bridge", "bridge/abi", "internal/meter", "pkg/nfcomms/"}, []string{"github.com/prometheus/"}},
	{"pkg/telemetry", []string{"pkg/nfcomms", "pkg/nfcomms/trace"}, []string{"go.opentelemetry.io/otel"}},
	{"cmd/", []string{"cmd/", "pkg/", "bridge", "bridge/abi", "internal/wire", "internal/cdi", "internal/dmaloop", "internal/fdpass", "internal/licenses", "internal/topology", "internal/model", "internal/slottrace", "internal/subprocess", "internal/texttable", "internal/units", "spec"}, []string{""}},
	{"bench/", []string{"bench/internal/"}, nil},
	{"bench/internal/papers", []string{"internal/model"}, []string{"math/rand/v2"}},
	{"bench/internal/", []string{"bench/internal/cli", "bench/internal/compare", "bench/internal/load", "bench/internal/papers", "bench/internal/plot", "bench/internal/stat", "pkg/", "bridge", "bridge/abi", "internal/mesh", "internal/mesh/udp", "internal/fdpass", "internal/topology", "internal/model", "internal/subprocess", "internal/texttable", "internal/units"}, []string{""}},
	{"bench/internal/report", []string{"bench/internal/", "pkg/", "bridge", "bridge/abi", "internal/mesh", "internal/mesh/udp", "internal/fdpass", "internal/topology", "internal/model", "internal/subprocess", "internal/texttable", "internal/units"}, []string{""}},
	{"cmd/nfsim/", []string{"cmd/internal/manual", "cmd/nfsim/", "internal/mesh", "internal/mesh/service", "internal/mesh/udp", "internal/topology", "internal/fdpass", "internal/owners", "internal/pci", "internal/shmwire", "bridge", "bridge/abi", "internal/wire", "internal/scripted", "internal/firmware"}, []string{sys, "github.com/spf13/cobra", "github.com/coreos/go-systemd", "github.com/elastic/go-seccomp-bpf"}},
	{"apps/", []string{"apps/", "pkg/", "internal/command"}, nil},
	{"apps/csp", []string{"apps/", "pkg/", "internal/command"}, []string{"golang.org/x/sync"}},
	{"apps/dashboard", []string{"internal/prom", "internal/subprocess"}, nil},
	{"apps/pcsa", []string{"apps/", "pkg/", "internal/command"}, []string{"github.com/axiomhq/hyperloglog", "github.com/gopacket/gopacket"}},
	{"apps/service", []string{"apps/", "pkg/", "internal/command"}, []string{"github.com/prometheus/", "github.com/tsenart/vegeta/"}},
	{"apps/shared", []string{"internal/subprocess", "internal/texttable", "internal/units", "pkg/nfcomms"}, nil},
	{"apps/torus", []string{"bridge/abi", "internal/subprocess", "internal/topology", "internal/model", "pkg/nfcomms", "pkg/nfcomms/fabric"}, nil},
	{"examples/", []string{"pkg/", "internal/command"}, nil},
	{"examples/dmaloop", []string{"pkg/", "internal/command", "internal/dmaloop"}, nil},
	{"examples/operated", []string{"pkg/"}, []string{"google.golang.org/grpc", "github.com/prometheus/"}},
	{"examples/sensors", []string{"pkg/", "internal/command"}, []string{"golang.org/x/sync"}},
	{"kubernetes/dra/internal/driver", []string{"bridge", "internal/cdi", "internal/shmwire", "internal/topology", "kubernetes/internal/plugin", "pkg/"}, []string{"golang.org/x/sync", "google.golang.org/", "k8s.io/"}},
	{"kubernetes/dra/nfdra", []string{"kubernetes/dra/internal/driver", "kubernetes/internal/command", "kubernetes/internal/plugin", "pkg/control"}, []string{"github.com/spf13/", "k8s.io/"}},
	{"kubernetes/internal/command", nil, []string{"github.com/spf13/"}},
	{"kubernetes/internal/plugin", []string{"internal/cdi", "internal/topology", "pkg/"}, []string{"github.com/fsnotify/fsnotify", "github.com/prometheus/", "golang.org/x/sync", "google.golang.org/", "k8s.io/kubelet/"}},
	{"kubernetes/nfplugin", []string{"kubernetes/internal/command", "kubernetes/internal/plugin", "pkg/control", "pkg/metrics"}, []string{"github.com/prometheus/", "github.com/spf13/"}},
	{"test/kubernetes", nil, nil},
	{"test/kubernetes/cluster", nil, nil},
	{"test/kubernetes/controlplane", nil, []string{"github.com/spf13/cobra", "k8s.io/"}},
	{"test/kubernetes/internal/render", nil, []string{"helm.sh/helm/v4", "sigs.k8s.io/kustomize"}},
	{"test/kubernetes/kubelet", nil, []string{"google.golang.org/grpc", "k8s.io/"}},
	{"test/telemetry", nil, nil},
	{"kmod/lib/umod", []string{"bridge", "internal/kdev/uapi", "internal/kdev/umod", "internal/shm", "internal/sim", "internal/vfio"}, []string{sys}},
	{"internal/", []string{"internal/"}, nil},
	{"internal/cdi", []string{"bridge"}, nil},
	{"internal/beside", []string{"bridge", "pkg/nfcomms", "pkg/program", "pkg/nfcomms/"}, nil},
	{"internal/command", []string{"pkg/nfcomms"}, []string{"github.com/schollz/progressbar", "golang.org/x/term"}},
	{"internal/fault", nil, []string{sys}},
	{"internal/support", []string{"bridge", "bridge/abi"}, nil},
	{"internal/shmwire", []string{"bridge", "bridge/abi", "internal/fdpass"}, nil},
	{"internal/dmaloop", []string{"pkg/nfcomms"}, []string{"golang.org/x/sync"}},
	{"internal/vmtest/", []string{"internal/subprocess", "internal/vmtest/", "internal/texttable"}, []string{sys}},
}

// backEnds are linked into the public API for their side effect only.
var backEnds = []string{"internal/kdev", "internal/shm", "internal/sim", "internal/vfio"}

// importRule returns the index of the longest entry of allowed for a folder.
func importRule(dir string) int {
	best := -1
	for i, a := range allowed {
		below := strings.HasSuffix(a.dir, "/") && strings.HasPrefix(dir+"/", a.dir)
		if (a.dir == dir || below) && (best < 0 || len(a.dir) > len(allowed[best].dir)) {
			best = i
		}
	}
	return best
}

func covers(list []string, folder string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		return a == folder || strings.HasSuffix(a, "/") && strings.HasPrefix(folder+"/", a)
	})
}

// wrongImports lists the imports of a file that its folder may not have.
func wrongImports(f *file) []string {
	rule := importRule(f.dir())
	if rule < 0 {
		return []string{fmt.Sprintf("%s: folder %q has no import rule", f.path, f.dir())}
	}
	var found []string
	for _, spec := range f.ast.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		blank := spec.Name != nil && spec.Name.Name == "_"
		if !mayImport(f, rule, name, blank) {
			found = append(found, fmt.Sprintf("%s: must not import %q", f.fset.Position(spec.Pos()), name))
		}
	}
	return found
}

func mayImport(f *file, rule int, name string, blank bool) bool {
	switch name {
	case "C":
		return slices.Contains([]string{"internal/firmware", "kmod/lib/umod", "bridge/bridgetest/testdata/card"}, f.dir()) && !f.isTest()
	case "unsafe":
		return f.isGenerated() || mayBeUnsafe(f)
	}
	if folder, own := strings.CutPrefix(name, module); own {
		linked := blank && slices.Contains(backEnds, folder) && strings.HasPrefix(f.path, "pkg/")
		return f.isTest() || linked || covers(allowed[rule].own, folder)
	}
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	if strings.HasPrefix(name, sys) {
		return slices.Contains(allowed[rule].outside, sys)
	}
	return f.isTest() || slices.ContainsFunc(allowed[rule].outside, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// mayBeUnsafe names the few places where pointers are made.
func mayBeUnsafe(f *file) bool {
	switch f.dir() {
	case "internal/wire", "internal/arena", "internal/kdev", "internal/kdev/uapi", "internal/kdev/umod", "bridge/mailbox", "internal/region", "internal/shm", "internal/sim", "internal/vfio", "internal/bridgetest", "bridge/bridgetest/testdata/card", "internal/scripted", "internal/firmware", "internal/fault", "kmod/lib/umod", "pkg/ring":
		return true
	}
	return slices.Contains([]string{
		"pkg/group/typed.go", "pkg/group/cells_linux.go", "pkg/nfcomms/bytesof.go", "pkg/nfcomms/bytesof_test.go", "pkg/control/access/peer_linux.go",
		"cmd/nfsim/port_test.go",
	}, f.path)
}

func TestImportsRunOneWay(t *testing.T) {
	for _, f := range tree(t, ".go") {
		report(t, wrongImports(f))
	}
}

func TestWrongImportsFinds(t *testing.T) {
	for path, name := range map[string]string{
		"bridge/abi/a.go":             module + "bridge",
		"bridge/b.go":                 module + "internal/sim",
		"internal/sim/s.go":           module + "pkg/nfcomms",
		"bridge/errors.go":            "golang.org/x/sys/unix",
		"bridge/mailbox/m.go":         module + "internal/firmware",
		"pkg/nfcomms/a.go":            module + "bridge/mailbox",
		"pkg/nfcomms/b.go":            module + "internal/sim", // not blank
		"pkg/nfcomms/c.go":            "unsafe",
		"pkg/nfcomms/d.go":            "google.golang.org/grpc",
		"bench/nfbench/main.go":       module + "internal/firmware",
		"bench/internal/x/x.go":       module + "bench/internal/peers", // a subject of another
		"examples/x/main.go":          module + "bridge",
		"apps/x/main.go":              module + "bridge",
		"internal/sim/c.go":           "C",
		"internal/firmware/f_test.go": "C",
		"bench/nfbench/cpu.go":        "golang.org/x/sys/unix",
		"bridge/status_x.go":          "unsafe",
		"bench/nfbench/bytes.go":      "unsafe",
	} {
		f := parseGo(t, path, "package p\nimport \""+name+"\"\n")
		wantOne(t, wrongImports(f), name)
	}
	wantOne(t, wrongImports(parseGo(t, "extra/e.go", "package p")), "no import rule")
	report(t, wrongImports(parseGo(t, "pkg/nfcomms/a.go", "package p\nimport _ \""+module+"internal/sim\"\n")))
	report(t, wrongImports(parseGo(t, "pkg/nfcomms/a_test.go", "package p\nimport \"go.uber.org/goleak\"\n")))
}

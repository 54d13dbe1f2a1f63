//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// workshop builds and obtains what jobs need, each thing once.
type workshop struct {
	root    string // of the checkout
	cache   string // .cache/vm: what was downloaded, and kernels; checkouts may share it
	out     string // bin/vm: what is built of this checkout, and logs
	built   map[string]string
	kernels map[string]*kernel
}

// kernel is one to boot, and to build the module for.
type kernel struct {
	name  string
	arch  string // vm.AMD64 or vm.ARM64
	image string // vmlinux, or an image that must be booted as such
	build string // KDIR
	debug bool   // it counts which lines of the module ran

	modules string // folder of the kernel's own modules that a job may load
}

func newWorkshop() (*workshop, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the checkout: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, "internal", "vmtest")); err != nil {
		return nil, errors.New("run vmtest from the top of the checkout")
	}
	w := &workshop{
		root: root, cache: filepath.Join(root, ".cache", "vm"),
		built: make(map[string]string), kernels: make(map[string]*kernel),
	}
	w.out = filepath.Join(root, "bin", "vm")
	if err := os.MkdirAll(w.out, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder for programs: %w", err)
	}
	return w, nil
}

// command runs one of our tools, shows what it says and returns what it prints.
func (w *workshop) command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := subprocess.Command(ctx, name, args...)
	cmd.Dir = w.root
	cmd.Env = append(os.Environ(), env...)
	var printed strings.Builder
	cmd.Stdout, cmd.Stderr = &printed, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, printed.String())
	}
	return strings.TrimSpace(printed.String()), nil
}

// once makes a thing the first time it is asked for.
func (w *workshop) once(key string, make func() (string, error)) (string, error) {
	if path, ok := w.built[key]; ok {
		return path, nil
	}
	path, err := make()
	if err == nil {
		w.built[key] = path
	}
	return path, err
}

// qemu returns the command of a QEMU that knows vfio-user.
func (w *workshop) qemu(ctx context.Context, arch string) (string, error) {
	return w.once("qemu "+arch, func() (string, error) { return w.command(ctx, nil, "scripts/vm-qemu.sh", arch) })
}

// kernelNames are those of Debian's release and its backports, our own with all checks, the same of
// the next release, that one with KCSAN, and that of the release for arm64.
var kernelNames = []string{"release", "backports", "debug", "newer", "kcsan", "arm64"}

// kernelFor returns a kernel by its name.
func (w *workshop) kernelFor(ctx context.Context, name string) (*kernel, error) {
	if k, ok := w.kernels[name]; ok {
		return k, nil
	}
	var k *kernel
	switch name {
	case "debug", "newer", "kcsan":
		dir, err := w.command(ctx, nil, "scripts/vm-debug-kernel.sh", name)
		if err != nil {
			return nil, err
		}
		// With KASAN, a kernel that is entered at its ELF entry point dies at once.
		k = &kernel{name: name, image: filepath.Join(dir, "bzImage"), build: filepath.Join(dir, "build"), debug: name != "kcsan"}
	case "arm64":
		dir, err := w.command(ctx, nil, "scripts/vm-kernel.sh", name)
		if err != nil {
			return nil, err
		}
		k = &kernel{name: name, arch: vm.ARM64, image: filepath.Join(dir, "vmlinuz"), build: filepath.Join(dir, "build")}
	default:
		dir, err := w.command(ctx, nil, "scripts/vm-kernel.sh", name)
		if err != nil {
			return nil, err
		}
		k = &kernel{name: name, image: filepath.Join(dir, "vmlinux"), build: filepath.Join(dir, "build"), modules: filepath.Join(dir, "modules")}
		if err := vm.ExtractVmlinux(filepath.Join(dir, "vmlinuz"), k.image); err != nil {
			return nil, err
		}
	}
	w.kernels[name] = k
	return k, nil
}

// goFlags keep the symbols out: what goes into a guest is copied byte by byte.
var goFlags = []string{"-buildvcs=false", "-trimpath", "-ldflags=-s -w"}

// tool returns the name of one of the compiler's tools for an architecture.
func tool(arch, name string) string {
	if arch == vm.ARM64 {
		return "aarch64-linux-gnu-" + name
	}
	return name
}

// program builds a program for the guest and returns its path.
func (w *workshop) program(ctx context.Context, arch string, p program) (string, error) {
	binary := filepath.Join(arch, cmp.Or(p.binary, p.name))
	return w.once("program "+binary, func() (string, error) {
		out := filepath.Join(w.out, binary)
		static := []string{"CGO_ENABLED=0"}
		if arch != vm.AMD64 {
			static = append(static, "GOARCH="+arch)
		}
		err := os.MkdirAll(filepath.Dir(out), 0o755)
		if err != nil {
			return "", fmt.Errorf("make a folder for programs: %w", err)
		}
		switch p.kind {
		case goTest:
			args := append(append([]string{"test", "-c"}, goFlags...), "-o", out)
			_, err = w.command(ctx, static, "go", append(args, p.source...)...)
		case goMain:
			args := append(append([]string{"build"}, goFlags...), "-o", out)
			_, err = w.command(ctx, static, "go", append(args, p.source...)...)
		case cTest, cMain:
			err = w.compile(ctx, arch, out, p.source)
		case rawFile:
			out = p.source[0]
		}
		return out, err
	})
}

// compile builds a C program. A source that several programs share is compiled once for each set of flags.
func (w *workshop) compile(ctx context.Context, arch, out string, source []string) error {
	gcc, flags := tool(arch, "gcc"), []string{"-static", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"}
	files := slices.DeleteFunc(slices.Clone(source), func(s string) bool {
		if strings.HasPrefix(s, "-") {
			flags = append(flags, s)
			return true
		}
		return false
	})
	for i, file := range files {
		key := fmt.Sprint(arch, flags, file)
		object, err := w.once("object "+key, func() (string, error) {
			object := filepath.Join(w.out, arch, fmt.Sprintf("%x.o", sha256.Sum256([]byte(key))))
			_, err := w.command(ctx, nil, gcc, append(slices.Clone(flags), "-c", "-o", object, file)...)
			return object, err
		})
		if err != nil {
			return err
		}
		files[i] = object
	}
	_, err := w.command(ctx, nil, gcc, slices.Concat(flags, []string{"-o", out}, files)...)
	return err
}

// device builds the process behind the guest's device.
func (w *workshop) device(ctx context.Context) (string, error) {
	return w.once("nfsim", func() (string, error) {
		out := filepath.Join(w.out, "nfsim")
		_, err := w.command(ctx, nil, "go", "build", "-buildvcs=false", "-o", out, "./cmd/nfsim")
		return out, err
	})
}

// udev returns Debian's udev as a guest has it, with our rule.
func (w *workshop) udev(ctx context.Context) ([]item, error) {
	root, err := w.once("udev", func() (string, error) { return w.command(ctx, nil, "scripts/vm-udev.sh") })
	if err != nil {
		return nil, err
	}
	const rule = "60-nfcomms.rules"
	items := []item{{name: "/lib/udev/rules.d/" + rule, from: filepath.Join(w.root, "deploy", "udev", rule), perm: 0o644}}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			items = append(items, item{name: strings.TrimPrefix(name, root), from: name, perm: 0o755})
		}
		return err
	})
	return items, err
}

// debugBuild compiles the module with what the debug kernel can make of it.
var debugBuild = []string{"NFCM_GCOV=1", "NFCM_KCOV=1", "UBSAN_SANITIZE=y"}

// module builds the kernel module for a kernel, in a copy of the sources so that
// kernels do not fight over object files. A defect is seeded on purpose: modules
// with one share another copy, so that only what it changes is compiled again.
func (w *workshop) module(ctx context.Context, k *kernel, defect string) (string, error) {
	name, folder := k.name, k.name
	if defect != "" {
		name, folder = name+"-"+defect, folder+"-defects"
	}
	return w.once("module "+name, func() (string, error) {
		dir := filepath.Join(w.out, "module", folder)
		if err := w.sources(ctx, dir, defect); err != nil {
			return "", err
		}
		args := []string{"-s", "-C", filepath.Join(dir, "kmod"), "KDIR=" + k.build}
		if k.arch != vm.AMD64 {
			args = append(args, "ARCH="+k.arch, "CROSS_COMPILE="+tool(k.arch, ""))
		}
		if k.debug {
			args = append(args, debugBuild...)
		}
		if _, err := w.command(ctx, nil, "make", args...); err != nil {
			return "", err
		}
		built := filepath.Join(dir, "kmod", "nfcomms.ko")
		out := filepath.Join(w.out, "nfcomms-"+name+".ko")
		// The debug information is most of the file and stays at home.
		_, err := w.command(ctx, nil, tool(k.arch, "strip"), "-g", "-o", out, built)
		return out, err
	})
}

// lock keeps other processes from a folder, which it makes.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder to lock: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open a folder to lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		fmt.Fprintf(os.Stderr, "vmtest: waiting for another vmtest that uses %s\n", dir)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// sources copies the module's sources to a folder, with a defect if one is named.
func (w *workshop) sources(ctx context.Context, dir, defect string) error {
	for _, part := range []string{"kmod", "firmware"} {
		if err := copySources(filepath.Join(w.root, part), filepath.Join(dir, part)); err != nil {
			return err
		}
	}
	if defect == "" {
		return nil
	}
	patch := filepath.Join(w.root, "internal", "vmtest", "defects", defect+".patch")
	_, err := w.command(ctx, nil, "patch", "-p1", "-s", "--no-backup-if-mismatch", "-d", dir, "-i", patch)
	return err
}

// copySources copies what a module is built from, leaving alone what has not
// changed, so that make does.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(name, from)
		if d.IsDir() {
			if skipped[d.Name()] {
				return filepath.SkipDir
			}
			return os.MkdirAll(to+rel, 0o755)
		}
		if base := d.Name(); base != "Makefile" && base != "Kbuild" && filepath.Ext(base) != ".c" && filepath.Ext(base) != ".h" ||
			strings.HasSuffix(base, ".mod.c") {
			return nil
		}
		return copyFile(name, to+rel)
	})
}

// skipped are folders that no module is built from.
var skipped = map[string]bool{"test": true, "testdata": true, "build": true}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(to); err == nil && string(old) == string(text) {
		return nil
	}
	return os.WriteFile(to, text, 0o644)
}

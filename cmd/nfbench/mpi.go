//go:build linux

package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed mpi
var mpiSources embed.FS

// mpiPeer is a program of the folder mpi, built with what is installed here.
type mpiPeer struct {
	dir, name string
	missing   string // why it is not measured
}

// findMPI compiles a peer where there is an MPI.
func findMPI(ctx context.Context, name string) *mpiPeer {
	for _, tool := range []string{"mpicc", "mpirun"} {
		if _, err := exec.LookPath(tool); err != nil {
			return &mpiPeer{missing: resultNotMeasured + tool + " is not installed"}
		}
	}
	source, err := mpiSources.ReadFile("mpi/" + name + ".c")
	m := &mpiPeer{name: name}
	if err == nil {
		m.dir, err = os.MkdirTemp("", "nfbench")
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(m.dir, name+".c"), source, 0o600)
	}
	var text []byte
	if err == nil {
		text, err = exec.CommandContext(ctx, "mpicc", "-O2", "-o", filepath.Join(m.dir, name), filepath.Join(m.dir, name+".c")).CombinedOutput()
	}
	if err != nil {
		first, _, _ := strings.Cut(string(text), "\n")
		m.missing = fmt.Sprintf(resultNotMeasured+"mpicc: %v: %s", err, first)
	}
	return m
}

func (m *mpiPeer) remove() {
	if m.dir != "" {
		_ = os.RemoveAll(m.dir) // what is left is of no use
	}
}

// run starts so many ranks and returns what they print.
func (m *mpiPeer) run(ctx context.Context, ranks int, args ...int) (string, error) {
	line := []string{"--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-np", strconv.Itoa(ranks), filepath.Join(m.dir, m.name)}
	for _, a := range args {
		line = append(line, strconv.Itoa(a))
	}
	cmd := exec.CommandContext(ctx, "mpirun", line...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("mpirun: %w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return string(text), nil
}

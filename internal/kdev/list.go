package kdev

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
)

func init() {
	bridge.RegisterList("dev", func(context.Context) []bridge.Found {
		return list(nodesIn(filepath.Dir(nodePrefix)), openNode)
	})
}

// nodesIn returns the numbers of the device nodes in a folder, in order.
func nodesIn(dir string) []int {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // as good as empty: opening says more
	}
	var numbers []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(nodePrefix))
		if n, err := strconv.ParseUint(digits, 10, 20); ok && err == nil && digits == strconv.FormatUint(n, 10) {
			numbers = append(numbers, int(n))
		}
	}
	slices.Sort(numbers)
	return numbers
}

// list describes the devices of these numbers. Without any it tries the first one,
// for the error that says what is missing.
func list(numbers []int, open func(path string) (kernel, error)) []bridge.Found {
	if len(numbers) == 0 {
		numbers = []int{0}
	}
	found := make([]bridge.Found, len(numbers))
	for i, n := range numbers {
		number := strconv.Itoa(n)
		f := bridge.Found{Address: "dev:" + number, Driver: "dev"}
		f.Info, f.Err = inspect(location{address: f.Address, node: nodePrefix + number}, open)
		found[i] = f
	}
	return found
}

// inspect opens a device for a moment to ask what it is and how it is.
func inspect(where location, open func(path string) (kernel, error)) (*bridge.Info, error) {
	k, err := open(where.node)
	if err != nil {
		return nil, err
	}
	d, err := newDevice(k, where, &bridge.Options{})
	if err != nil {
		_ = k.close()
		return nil, err
	}
	info := d.Info()
	_, err = d.Health()
	_ = d.Close()
	return &info, err
}

//go:build cgo

package admin_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// check ends an example that does not work.
func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// The devices that can be opened here, and the reasons against the others.
func ExampleDevices() {
	found, err := admin.Devices(context.Background())
	check(err)
	for _, f := range found {
		if f.Driver == "sim" { // others this host may have or not
			fmt.Println(f.Address, f.Err)
		}
	}
	// Output: sim: <nil>
}

// The memory of a device, and its health.
func ExampleMemoryOf() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:?imem=2MiB")
	check(err)
	defer dev.Close()

	m, err := admin.MemoryOf(ctx, dev, admin.IMEM)
	check(err)
	h, err := dev.Health()
	check(err)
	fmt.Println(m.Size, h.Diagnostic.Valid(), dev.Info().Driver)
	// Output: 2097152 true sim
}

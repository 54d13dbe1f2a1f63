package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/licenses"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// versionRecord is the output of nfctl version.
type versionRecord struct {
	Client  buildRecord      `json:"client" doc:"this nfctl"`
	Server  *buildRecord     `json:"server" doc:"the server; null if none answered, or with --client"`
	Devices []firmwareRecord `json:"devices" doc:"the server's devices"`
	Module  *moduleRecord    `json:"module" doc:"the kernel module of this host; null if it is not loaded"`
}

// buildRecord is the version of a program.
type buildRecord struct {
	Version  string   `json:"version" doc:"module version, (devel) if it was built from a checkout"`
	Commit   string   `json:"commit" doc:"revision of the source; empty if it is not known"`
	Go       string   `json:"go" doc:"Go toolchain"`
	ABIMajor int32    `json:"abi_major" doc:"device ABI that it was built for, major"`
	ABIMinor int32    `json:"abi_minor" doc:"device ABI that it was built for, minor"`
	Schemes  []string `json:"schemes" doc:"address schemes that it can open"`
}

// firmwareRecord is the version of a device.
type firmwareRecord struct {
	Device   string `json:"device" doc:"name of the device"`
	Driver   string `json:"driver" doc:"back end; empty if the device was never open, and then there is no ABI either"`
	Module   string `json:"driver_version" doc:"version of the kernel module that drives it; empty where there is none"`
	ABIMajor int32  `json:"abi_major" doc:"ABI of its firmware, major"`
	ABIMinor int32  `json:"abi_minor" doc:"ABI of its firmware, minor"`
}

// moduleRecord is the version of the kernel module.
type moduleRecord struct {
	Version string `json:"version" doc:"version of the module; empty if it tells none"`
}

func newVersion(a *app) *cobra.Command {
	var client, terms bool
	cmd := &cobra.Command{
		Use: "version", GroupID: groupLook,
		Short: "Show the versions of nfctl, the server, its firmware and the kernel module",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if terms {
				_, err := fmt.Fprint(cmd.OutOrStdout(), licenses.Text)
				return err
			}
			r := versionRecord{Client: ownBuild(), Devices: []firmwareRecord{}, Module: moduleOf("/")}
			if client {
				return a.print(r)
			}
			failed := a.bounded(func(ctx context.Context, c *control.Client, _ []string) error {
				return r.ask(ctx, c)
			})(cmd, args)
			if err := a.print(r); err != nil {
				return err
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&client, "client", false, "do not ask a server")
	cmd.Flags().BoolVar(&terms, "licenses", false, "print the licences of the modules in the programs, and no version")
	return cmd
}

// ask fills in what the server knows.
func (r *versionRecord) ask(ctx context.Context, c *control.Client) error {
	v, err := c.Versions.GetVersion(ctx, &nfcommsv1.GetVersionRequest{})
	if err != nil {
		return err
	}
	r.Server = &buildRecord{
		Version: v.GetVersion(), Commit: v.GetCommit(), Go: v.GetGoVersion(),
		ABIMajor: v.GetAbiMajor(), ABIMinor: v.GetAbiMinor(), Schemes: v.GetSchemes(),
	}
	for _, d := range v.GetDevices() {
		r.Devices = append(r.Devices, firmwareRecord{
			Device: deviceID(d.GetName()), Driver: d.GetDriver(), Module: d.GetDriverVersion(), ABIMajor: d.GetAbiMajor(), ABIMinor: d.GetAbiMinor(),
		})
	}
	return nil
}

// ownBuild describes this program.
func ownBuild() buildRecord {
	version, commit := control.Build()
	return buildRecord{
		Version: version, Commit: commit, Go: runtime.Version(),
		ABIMajor: abi.Major, ABIMinor: abi.Minor, Schemes: bridge.Schemes(),
	}
}

// moduleOf reads the version of the kernel module under a root; nil if it is
// not loaded.
func moduleOf(root string) *moduleRecord {
	dir := root + "/sys/module/nfcomms"
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	version, err := os.ReadFile(dir + "/version")
	if err != nil {
		return &moduleRecord{}
	}
	return &moduleRecord{Version: strings.TrimSpace(string(version))}
}

// versionRow is a line of the table of versions.
type versionRow struct {
	what, version, abi, detail string
}

func (r versionRecord) table(p *printer) {
	rows := []versionRow{r.Client.row("client")}
	if r.Server != nil {
		rows = append(rows, r.Server.row("server"))
	}
	for _, d := range r.Devices {
		rows = append(rows, versionRow{"firmware " + d.Device, "-", abiText(d.Driver, d.ABIMajor, d.ABIMinor), strings.TrimSpace("driver " + orDash(d.Driver) + " " + d.Module)})
	}
	module := versionRow{"kernel module", "-", "-", "not loaded"}
	if r.Module != nil {
		module = versionRow{"kernel module", orDash(r.Module.Version), "-", "loaded"}
	}
	writeTable(p, []column[versionRow]{
		{title: "PART", cell: func(v versionRow) string { return v.what }},
		{title: "VERSION", cell: func(v versionRow) string { return v.version }},
		{title: "ABI", cell: func(v versionRow) string { return v.abi }},
		{title: "DETAIL", cell: func(v versionRow) string { return v.detail }},
	}, append(rows, module))
}

func (b buildRecord) row(what string) versionRow {
	detail := b.Go + ", opens " + orDash(strings.Join(b.Schemes, ", "))
	if b.Commit != "" {
		detail += ", commit " + b.Commit
	}
	return versionRow{what, b.Version, fmt.Sprintf("%d.%d", b.ABIMajor, b.ABIMinor), detail}
}

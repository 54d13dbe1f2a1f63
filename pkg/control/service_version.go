package control

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// versionService implements nfcomms.v1.VersionService.
type versionService struct {
	nfcommsv1.UnsafeVersionServiceServer
	s *Server
}

// modulePath is this module's.
const modulePath = "github.com/nfcomms/nfcomms"

// release and revision are set by the linker when a package is built; nothing
// writes them afterwards.
var release, revision string

// Build returns the version of this module in the running program, and the
// revision of its source if the program was built from it.
func Build() (version, commit string) {
	if release != "" {
		return release, revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	if info.Main.Path != modulePath {
		for _, m := range info.Deps {
			if m.Path == modulePath {
				return m.Version, ""
			}
		}
		return "", ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return info.Main.Version, commit
}

// GetVersion returns what runs.
func (v versionService) GetVersion(context.Context, *nfcommsv1.GetVersionRequest) (*nfcommsv1.GetVersionResponse, error) {
	version, commit := Build()
	resp := &nfcommsv1.GetVersionResponse{
		Version: version, Commit: commit, GoVersion: runtime.Version(),
		AbiMajor: abi.Major, AbiMinor: abi.Minor, Schemes: bridge.Schemes(),
	}
	all, _ := v.s.list("")
	for _, d := range all {
		m := &nfcommsv1.DeviceVersion{Name: d.name()}
		if dev := d.opened(); dev != nil {
			info := dev.Info()
			m.DriverVersion = text(info.DriverVersion)
			m.Driver, m.AbiMajor, m.AbiMinor = info.Driver, int32(info.Major), int32(info.Minor)
		}
		resp.Devices = append(resp.Devices, m)
	}
	return resp, nil
}

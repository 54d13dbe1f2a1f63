package driver

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"github.com/nfcomms/nfcomms/internal/topology"
	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Name is that of the driver, and the domain of attributes and capacities without another.
const Name = "nfcomms.dev"

// source is a device of the daemon, with its place in a fabric; nil without one.
type source struct {
	plugin.Device
	fabric *nfcommsv1.GetFabricResponse
	memory int64 // bytes that claims of it may map together, where it is limited
}

// attributes are those that classes and claims select by.
type attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// text sets one that is not empty, cut to what the API server takes.
func (a attributes) text(name resourceapi.QualifiedName, value string) {
	if value = strings.ToValidUTF8(value[:min(len(value), resourceapi.DeviceAttributeMaxValueLength)], ""); value != "" {
		a[name] = resourceapi.DeviceAttribute{StringValue: &value}
	}
}

func (a attributes) number(name resourceapi.QualifiedName, n int64) {
	a[name] = resourceapi.DeviceAttribute{IntValue: &n}
}

// attributes returns what the daemon reports. It leaves out what the daemon does not know.
func (s *source) attributes() attributes {
	a := make(attributes)
	a.text("name", s.Name)
	a.text("kind", map[bool]string{true: "shared", false: "card"}[strings.HasPrefix(s.Info.GetAddress(), "shm:")])
	if s.Info.GetDriver() != "" {
		version := fmt.Sprintf("%d.%d.0", s.Info.GetAbiMajor(), s.Info.GetAbiMinor())
		a["abi"] = resourceapi.DeviceAttribute{VersionValue: &version}
		a.text("driver", s.Info.GetDriver())
		a.number("islands", int64(s.Info.GetShape().GetIslands()))
		a.number("contexts", int64(s.Info.GetShape().GetContexts()))
	}
	if b := s.Info.GetBoard(); b != nil {
		a.board(b)
	}
	if s.fabric != nil {
		a.place(s.fabric)
	}
	return a
}

// board adds the card and its place on the bus; pcieRoot is what claims match with other drivers' devices.
func (a attributes) board(b *nfcommsv1.Board) {
	a.text("vendor", fmt.Sprintf("%04x", b.GetVendorId()))
	a.text("model", fmt.Sprintf("%04x", b.GetDeviceId()))
	a.text("serial", b.GetSerial())
	if b.NumaNode != nil && b.GetNumaNode() >= 0 {
		a.number("numaNode", int64(b.GetNumaNode()))
	}
	if lanes := b.GetLink().GetWidth(); lanes > 0 {
		a.number("lanes", int64(lanes))
	}
	for _, find := range []func(string) (deviceattribute.DeviceAttribute, error){
		deviceattribute.GetPCIBusIDAttribute,
		func(address string) (deviceattribute.DeviceAttribute, error) {
			return deviceattribute.GetPCIeRootAttributeByPCIBusID(address)
		},
	} {
		if found, err := find(b.GetAddress()); err == nil {
			a[found.Name] = found.Value
		}
	}
}

// place adds the node of a fabric. Devices of one ring have one ringX, ringY or ringZ: the nodes of a
// torus that differ in this coordinate alone.
func (a attributes) place(f *nfcommsv1.GetFabricResponse) {
	torus, err := topology.ParseTorus(f.GetTorus())
	if err != nil {
		return
	}
	node, err := topology.ParseNode(f.GetNode())
	if err != nil {
		return
	}
	at := [3]int{int(node.X()), int(node.Y()), int(node.Z())}
	a.text("torus", torus.String())
	a.text("node", node.String())
	a.number("links", int64(f.GetLinks().GetNormal()))
	for i, axis := range []string{"x", "y", "z"} {
		a.number(resourceapi.QualifiedName(axis), int64(at[i]))
		ring := strings.Split(fmt.Sprintf("%d.%d.%d", at[0], at[1], at[2]), ".")
		ring[i] = "*"
		a.text(resourceapi.QualifiedName("ring"+strings.ToUpper(axis)), torus.String()+":"+strings.Join(ring, "."))
	}
}

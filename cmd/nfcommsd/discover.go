package main

import (
	"path/filepath"
	"strings"
)

// deviceNodes are the nodes of the kernel module.
const deviceNodes = "/dev/nfcomms[0-9]*"

// found returns the addresses of the device nodes of this machine, named after them.
func found(pattern string) map[string]string {
	devices := make(map[string]string)
	nodes, _ := filepath.Glob(pattern) // which fails for a bad pattern alone
	for _, node := range nodes {
		devices[filepath.Base(node)] = "dev:" + strings.TrimPrefix(node, "/dev/nfcomms")
	}
	return devices
}

// discover adds devices that appeared since the last time to those in force, and returns them. One
// whose node was removed stays listed with its failure until a reload.
func (d *daemon) discover() map[string]string {
	fresh := make(map[string]string)
	if !d.conf.Auto {
		return fresh
	}
	for name, address := range found(d.nodes) {
		if d.conf.Devices[name] == "" {
			d.conf.Devices[name], fresh[name] = address, address
			d.log.Info("device found", "device", name, "address", address)
		}
	}
	return fresh
}

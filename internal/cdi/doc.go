// Package cdi describes what a container needs to open a device, in the form of the Container Device
// Interface: device nodes, mounts, and the variable that nfcomms.Open reads for "env:".
package cdi

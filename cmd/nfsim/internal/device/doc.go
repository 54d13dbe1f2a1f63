// Package device is the PCI function of docs/device-spec.md: config space,
// registers and the epochs of whatever boots behind them. It implements
// vfiouser.Device.
package device

// Package pci is the Go mirror of firmware/nfc_pci.h: ids, BARs and registers
// of the device as a PCI function. docs/device-spec.md is the manual.
package pci

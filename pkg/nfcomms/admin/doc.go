// Package admin is for administrators of devices, who bring up or examine a card: the devices of
// this host, the programs, memory and channels of a device, and its registers and interrupts past
// its driver. The device works on meanwhile.
package admin

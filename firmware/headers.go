package firmware

import "embed"

// Headers are what a device program includes: nfc_fw.h is its interface. They are
// in every build, so that programs can be built where the firmware is not.
//
//go:embed nfc_abi.h nfc_fw.h nfc_group.h nfc_log.h nfc_ring.h
var Headers embed.FS

// Package nfcomms is the root of the module, and no library: applications import
// pkg/nfcomms. It holds what programs of this module build on the user's machine, as
// only this folder is above all of it.
package nfcomms

import "embed"

// Ring is the ring of libnfcomms, kmod/lib/ring.c and ring_owner.c, with the headers
// that these include.
//
//go:embed kmod/lib/ring.c kmod/lib/ring_owner.c kmod/lib/ring.h kmod/lib/library.h kmod/lib/libnfcomms.h
//go:embed kmod/uapi/nfcomms.h firmware/nfc_abi.h
var Ring embed.FS

// Library is libnfcomms as far as devices go, with the headers that it includes; without
// what serves addresses that need no kernel module, which is Go.
//
//go:embed kmod/lib/device.c kmod/lib/control.c kmod/lib/channel.c kmod/lib/async.c kmod/lib/region.c kmod/lib/umod.c
//go:embed kmod/lib/library.h kmod/lib/libnfcomms.h kmod/uapi/nfcomms.h kmod/core/nfcm_errno.h firmware/nfc_abi.h
var Library embed.FS

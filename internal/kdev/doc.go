// Package kdev is the back end "dev:": a PCIe device behind the Linux kernel
// module nfcomms. The device moves the caller's own pages, which the module
// pins and maps for as long as a transfer lasts.
//
//	dev:0              /dev/nfcomms0
//	dev:/dev/nfcomms1  a device node by its path
//
// Options of the address reset the device and give its next epoch a shape; that
// needs CAP_SYS_ADMIN, and ends what others do with the device:
//
//	managers=8        mailboxes, each with a read and a write manager
//	islands=1         threads that run managers and processes
//	channels=65536    target ids are below this
//	slots=1024        per mailbox ring, a power of two
//	window=512        gather lists in flight per transfer, a power of two
//	emem=1GiB         external memory
//	target-timeout=0  how long an offer waits for its target; 0: for ever
//
// One option does neither: the goroutine that reads completions looks for what comes for so
// long before it sleeps, which takes that much of a processor, and saves an interrupt's thread
// and a wake-up; at most the device's busy_poll_max:
//
//	busy-poll=0       up to 10ms; 20us is a good value where echoes take less
//
// A program has all rights of the device: Load needs CAP_SYS_ADMIN as well, and
// returns an error that is os.ErrPermission without.
//
// Every call is one operation that is handed to the module by ioctl and whose
// completion is read from the same file. One goroutine per device reads them
// through the runtime's poller, so that a blocked call holds no thread. The
// interface is kmod/uapi/nfcomms.h.
package kdev

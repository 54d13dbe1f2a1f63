// Package sim is the back end "sim:": the device firmware on threads of this
// process. It needs no root and no hardware, and it is the default.
//
// Options of the address, all optional:
//
//	managers=8        mailboxes, each with a read and a write manager
//	islands=1         threads that run managers and processes
//	microengines=8    per island
//	contexts=8        processes per microengine
//	channels=65536    target ids are below this
//	slots=1024        per mailbox ring, a power of two
//	window=512        gather lists in flight per transfer, a power of two
//	engines=0         DMA threads beside the islands
//	cls=64KiB ctm=256KiB imem=4MiB emem=1GiB   device memory
//	stack=64KiB       of a device process
//	beat=100ms        heartbeat interval
//	target-timeout=0  how long an offer waits for its target; 0: for ever
//	spin=25us         how long an idle island spins before it sleeps
//
// The first open installs handlers of SIGSEGV and SIGBUS, so that a transfer
// which meets memory that cannot be reached fails in place of the process. They
// pass on every other fault to the handlers that were there before, Go's for
// one. A library that installs its own later must do the same; until the next
// open or reset, memory that cannot be reached ends the process if it does not.
package sim

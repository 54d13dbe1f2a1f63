// Package sim is the back end "sim:": the device firmware on threads of this
// process. It needs no root and no hardware, and it is the default. It is tested
// on x86-64, and on arm64 by emulation.
//
// Options of the address, all optional:
//
//	managers=8        mailboxes, each with a read and a write manager; 1..64
//	islands=1         threads that run managers and processes; 1..16, a divisor of managers
//	microengines=8    per island; 1..64
//	contexts=8        processes per microengine; 1..64, and 8 on an island
//	channels=65536    target ids are below this; 16..16777216
//	slots=1024        per mailbox ring, a power of two; 16..16384
//	runs=1            entries of gather lists are runs of pages, 0: single pages; 0..1
//	window=512        gather lists in flight per transfer, a power of two; 1..8192
//	eager=4           page entries of a transfer that travels as one slot; 0: none does; 0..4
//	engines=0         DMA threads beside the islands; 0..16
//	busy=0            one DMA piece of so many is refused for now, so that rounds
//	                  repeat (S21); 0: none, 1: all
//	mhz=0             clock by which each call of nfc_at takes the cycles of an access to that
//	                  type of memory, as "nfbench model contexts" has them; 0: none; 0..10000
//	cls=64KiB ctm=256KiB imem=4MiB emem=1GiB   device memory, in pages of 4KiB; 4KiB..256GiB
//	buffer=           device memory that a process may have for each of its targets, in pages;
//	                  without it as there is room; 4KiB..256GiB
//	stack=64KiB       of a device process; 16KiB..16MiB
//	beat=100ms        heartbeat interval, whole milliseconds; 1ms..1m
//	target-timeout=0  how long an offer waits for its target; 0: for ever; up to 8760h
//	stall-timeout=10s how long a transfer may stand still while the device beats,
//	                  at least five heartbeats; 1ms..8760h
//	spin=25us         how long an idle island spins before it sleeps; 0..1s
//	torus=            nodes of a fabric in x, y and z, as 4x4x1, of which the device is
//	                  0.0.0: 1..32 a side, 2..1024 in all; without it there is none
//	errors=0          of a torus: the part of words that each link flips, loses, doubles
//	                  and delays, each; 0..0.001
//
// An option that is not within its range is bridge.ErrInvalid, with its name, what
// was given and what is allowed.
//
// The first open installs handlers of SIGSEGV and SIGBUS, so that a transfer
// which meets memory that cannot be reached fails in place of the process. They
// pass on every other fault to the handlers that were there before, Go's for
// one. If a device program is at fault they write its name, its process and what
// it did to standard error first: below each stack lies a guard of 1 MiB. A library that installs its own later must do the same; until the next
// open or reset, memory that cannot be reached ends the process if it does not.
package sim

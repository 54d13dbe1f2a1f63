// Command nfbench measures NFComms as an application sees it, through
// pkg/nfcomms alone.
//
//	nfbench latency      the latency test of the NFComms paper
//	nfbench throughput   the throughput test of the paper
//	nfbench stack        the stack analysis: where the time of a transfer goes
//	nfbench crowd        many callers at once, on a quiet machine and a busy one
//	nfbench group        members that exchange data every step
//	nfbench idle         clients of a shared device that do nothing
//	nfbench link         a link of the fabric beside its report, model and simulation
//	nfbench fabric       nodes of a torus in this process
//	nfbench peers        beside memcpy, Go channels, UNIX sockets and gRPC
//
// Rules of every command: both sides of a ratio are interleaved in the same
// run; wall and CPU time are reported; nothing that is not a transfer is timed;
// figures of the paper were measured on hardware and stand in columns of their
// own, figures of a simulated device are labelled so.
//
// Exit codes: 0 measured, 1 the measurement failed, 2 bad input, 130
// interrupted. Goals that are not met do not change the exit code.
package main

/*
 * More channels than managers: a message that no process takes yet is parked with its channel, and
 * its manager goes on.
 *
 * Bounds: CHANNELS channels, MANAGERS managers that share a ring of SLOTS slots, one message each.
 * One process reads the channels from the last to the first, and each of its reads depends on the
 * one before: the worst order.
 * Safety: each message is taken once. Progress: every send returns, with fewer managers than channels.
 *
 * BLOCKING is a manager that waits until the process takes its message (Pennefather 2017).
 */
#include "host.pml"
#include "device.pml"

#ifndef CHANNELS
#define CHANNELS 3
#endif
#ifndef MANAGERS
#define MANAGERS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif

mtype = { DIRECT, ACK };

chan h2d = [SLOTS] of { mtype, byte };
chan d2h = [SLOTS] of { mtype, byte };

byte hs[CHANNELS], hm[CHANNELS], ds[CHANNELS];
short dm[CHANNELS];
bool delivered[CHANNELS];
byte took[CHANNELS];

#define ROOM(c) (len(c) < SLOTS)

proctype sender(byte c)
{
	byte ev;

	atomic {
		ROOM(h2d) -> host_h2d_put_message(hs[c], hm[c], ev);
		assert(ev != E_never);
		h2d!DIRECT, c
	}
	delivered[c];
progress_sent:
	assert(took[c] == 1)
}

active proctype drain()
{
	mtype t;
	byte ev, c;

end_drain:
	do
	:: atomic {
		d2h?t, c -> host_h2d_consumed(hs[c], hm[c], ev);
		assert(ev == E_delivered);
		delivered[c] = true
	}
	od
}

active [MANAGERS] proctype manager()
{
	mtype t;
	byte put, ret, c;

end_manager:
	do
	:: atomic {
		ROOM(d2h) && len(h2d) > 0 -> h2d?t, c;
		dev_h2d_DIRECT(ds[c], dm[c], put, ret);
		assert(put == P_nothing)
	}
#ifdef BLOCKING
		; took[c]
#endif
	od
}

active proctype process()
{
	byte put, ret;
	byte c = CHANNELS;

	do
	:: c > 0 ->
		c--;
		atomic {
			ROOM(d2h) && may_dev_h2d_take(ds[c], dm[c]) ->
			dev_h2d_take(ds[c], dm[c], put, ret);
			assert(put == P_ACK_CONSUMED);
			took[c]++;
			d2h!ACK, c
		}
	:: else -> break
	od
}

init {
	byte c;

	atomic {
		do
		:: c < CHANNELS -> run sender(c); c++
		:: else -> break
		od
	}
}

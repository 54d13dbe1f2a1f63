/*
 * A channel between two hosts: what one sends the device offers to the other, under an id of its own.
 * The hosts follow their rows. The device between them has none: it is written after
 * firmware/core/relay.c and forward.c.
 *
 * Bounds: K messages one way, rings of SLOTS slots; the receiving host closes its half, stops
 * answering, or detaches.
 * Safety: a message has one outcome at both hosts, unless the receiving one stops answering; messages
 * arrive once and in order; no message of the device is a fault.
 * Progress: every call of the sending host ends: by the other host, its own withdrawal, or the device
 * that waits no longer for the other host's answer.
 */
#include "host.pml"

#ifndef K
#define K 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef FIRST
#define FIRST 3 /* the receiving host has had so many offers of others */
#endif
#define TOOK 1

mtype = { DIRECT, ACK, ERROR, WITHDRAW, WITHDRAWN, CLOSE };

chan from_a = [SLOTS] of { mtype, byte, byte }; /* type, id, number of the message */
chan to_a = [SLOTS] of { mtype, byte, byte };
chan from_b = [SLOTS] of { mtype, byte, byte };
chan to_b = [SLOTS] of { mtype, byte, byte };

byte as, am, aid; /* the h2d half of host a */
byte bs, bm, bid = FIRST; /* the d2h half of host b */
byte number; /* of the message that b was offered last */
byte outcome, took[K + 1], last;
bool over; /* for a: the channel is closed */
bool silent; /* b does not answer any more */
bool shut; /* b closed the half */
bool gone; /* b detached */

#define ROOM(c) (len(c) < SLOTS)

active proctype sender()
{
	byte ev, n;

	do
	:: n < K && !over ->
		n++;
		atomic {
			ROOM(from_a) -> host_h2d_put_message(as, am, ev);
			assert(ev != E_never);
			aid++;
			outcome = E_none;
			from_a!DIRECT, aid, n
		}
		do
		:: atomic {
			outcome != E_none ->
			assert(silent || (outcome == E_delivered) == (took[n] == TOOK));
			assert(outcome != E_delivered || took[n] == TOOK);
			break
		}
		:: atomic { /* its context ends */
			outcome == E_none && ROOM(from_a) && may_host_h2d_put_WITHDRAW(as, am) ->
			host_h2d_put_WITHDRAW(as, am, ev);
			from_a!WITHDRAW, aid, n
		}
		od;
progress_sent:
		skip
	:: else -> break
	od
}

active proctype drain_a()
{
	mtype t;
	byte ev, id, n;

end_drain_a:
	do
	:: atomic {
		to_a?t, id, n -> ev = E_stale;
		if
		:: t == ACK && id == aid && as == H_offered -> host_h2d_consumed(as, am, ev); outcome = ev
		:: t == ERROR && id == aid && as == H_offered -> host_h2d_refused(as, am, ev); outcome = ev
		:: t == WITHDRAWN && id == aid ->
			host_h2d_WITHDRAWN(as, am, ev);
			if :: ev == E_withdrawn -> outcome = ev :: else fi
		:: t == CLOSE -> over = true
		:: else
		fi;
		assert(ev != E_fault);
		id = 0; n = 0
	}
	od
}

/* The device's two ends. */
active proctype device()
{
	mtype t;
	byte id, n, ida, idb = FIRST;
	bool offered, back, closed, told, last_words;

end_device:
	do
	:: atomic {
		ROOM(to_b) && ROOM(to_a) && len(from_a) > 0 -> from_a?t, id, n;
		if
		:: t == DIRECT && closed -> to_a!ERROR, id, n
		:: t == DIRECT && !closed ->
			assert(!offered);
			ida = id; idb++; offered = true; back = false;
#ifdef ONE_ID
			idb = ida;
#endif
			to_b!DIRECT, idb, n
		:: t == WITHDRAW && offered && id == ida ->
			back = true;
#ifdef AT_ONCE
			offered = false; to_a!WITHDRAWN, ida, n;
#endif
			to_b!WITHDRAW, idb, n
		:: else
		fi;
		id = 0; n = 0
	}
	:: atomic {
		ROOM(to_a) && len(from_b) > 0 && !last_words -> from_b?t, id, n;
		if
		:: t == ACK && offered && id == idb -> offered = false; to_a!ACK, ida, n
		:: t == ERROR && offered && id == idb -> offered = false; to_a!ERROR, ida, n
		:: t == WITHDRAWN && offered && id == idb && back -> offered = false; to_a!WITHDRAWN, ida, n
		:: t == CLOSE ->
			closed = true;
			if
			:: offered -> offered = false; to_a!ERROR, ida, 0
			:: else
			fi
		:: else
		fi;
		id = 0; n = 0
	}
	:: atomic { gone && !last_words -> last_words = true; printf("MSC: b has detached\n") }
	:: atomic { /* of what lies in the ring, what b received counts */
		last_words && ROOM(to_a) && len(from_b) > 0 -> from_b?t, id, n;
		if
#ifndef UNREAD
		:: t == ACK && offered && id == idb -> offered = false; to_a!ACK, ida, n
#endif
		:: else
		fi;
		id = 0; n = 0
	}
	:: atomic {
		last_words && len(from_b) == 0 && !closed && ROOM(to_a) ->
		closed = true;
		if
		:: offered -> offered = false; to_a!ERROR, ida, 0
		:: else
		fi
	}
#ifndef FOR_EVER
	:: atomic { /* two seconds after the WITHDRAW */
		offered && back && silent && len(from_b) == 0 && len(to_b) == 0 && ROOM(to_a) ->
		printf("MSC: waits no longer\n");
		offered = false; closed = true;
		to_a!ERROR, ida, 0
	}
#endif
	:: atomic { closed && !told && !offered && ROOM(to_a) -> told = true; to_a!CLOSE, 0, 0 }
	od
}

active proctype receiver()
{
	byte ev;

end_receiver:
	do
	:: atomic { !silent && !shut && !gone && may_host_d2h_hold(bs, bm) -> host_d2h_hold(bs, bm, ev) };
		if
		:: atomic {
			ROOM(from_b) -> host_d2h_put_accept(bs, bm, ev);
			assert(ev != E_never && took[number] == 0 && number > last);
			took[number] = TOOK; last = number;
			from_b!ACK, bid, number
		}
		:: atomic { ROOM(from_b) -> host_d2h_put_refuse(bs, bm, ev); assert(ev != E_never); from_b!ERROR, bid, number }
		:: atomic { host_d2h_release(bs, bm, ev); assert(ev != E_never) }
		fi
	:: atomic { !silent && !shut && !gone -> silent = true; printf("MSC: answers no more\n") }
	:: atomic { !silent && !gone -> gone = true; printf("MSC: detaches\n") }
	:: atomic { !silent && !shut && !gone && ROOM(from_b) && may_host_d2h_put_CLOSE(bs, bm) ->
		host_d2h_put_CLOSE(bs, bm, ev);
		shut = true;
		from_b!CLOSE, 0, 0
	}
	od
}

active proctype drain_b()
{
	mtype t;
	byte ev, id, n;

end_drain_b:
	do
	:: atomic {
		to_b?t, id, n -> ev = E_stale;
		if
		:: t == DIRECT ->
			assert(id == bid + 1);
			host_d2h_offer(bs, bm, ev);
			bid++;
			if :: ev == E_offer -> number = n :: else fi
		:: t == WITHDRAW && id == bid -> host_d2h_WITHDRAW(bs, bm, ev)
		:: else -> assert(id <= bid)
		fi;
		assert(ev != E_fault);
		id = 0; n = 0
	}
	:: atomic {
		!silent && !gone && may_host_d2h_put_WITHDRAWN(bs, bm) && ROOM(from_b) ->
		host_d2h_put_WITHDRAWN(bs, bm, ev);
		from_b!WITHDRAWN, bid, 0
	}
	od
}

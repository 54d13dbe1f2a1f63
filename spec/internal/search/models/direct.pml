/*
 * Messages both ways over one channel, either side of which may take its offer back.
 *
 * Bounds: K messages each way, rings of SLOTS slots. The context of a send may end at any time, a
 * receive may leave an offer or take it, the process may be stopped at any time.
 * Safety: an outcome is the same at both ends; nothing is lost, doubled or reordered; no message of
 * an honest side is a fault for the other.
 * Progress: every call ends.
 */
#include "host.pml"
#include "device.pml"

#ifndef K
#define K 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#define TOOK 1 /* what became of a message */
#define BACK 2

mtype = { DIRECT, ACK, ERROR, WITHDRAW, WITHDRAWN };

chan h2d = [SLOTS] of { mtype, byte, byte }; /* type, half, id */
chan d2h = [SLOTS] of { mtype, byte, byte };

byte hs[2], hm[2], hid[2]; /* the host's halves */
byte ds[2]; /* the device's */
short dm[2];
byte dnext[2] = 1;
byte given[K + 2], taken[K + 2]; /* h2d and d2h messages, by id */
byte outcome; /* of the send */
byte wrote; /* of the write; 0: none yet */
byte last; /* message that the process took */
byte recall; /* id of the message to give back; 0: none */
bool stop;

#define ROOM(c) (len(c) < SLOTS)

active proctype sender()
{
	byte ev, n;

	do
	:: n < K ->
		atomic {
			ROOM(h2d) -> host_h2d_put_message(hs[0], hm[0], ev);
			assert(ev != E_never);
			hid[0]++;
			outcome = E_none;
			h2d!DIRECT, 0, hid[0]
		}
		do
		:: atomic {
			outcome != E_none -> assert(hs[0] == H_idle);
			assert((outcome == E_delivered) == (given[hid[0]] == TOOK));
			break
		}
		:: atomic { /* its context ends */
			outcome == E_none && ROOM(h2d) && may_host_h2d_put_WITHDRAW(hs[0], hm[0]) ->
			host_h2d_put_WITHDRAW(hs[0], hm[0], ev);
			h2d!WITHDRAW, 0, hid[0]
#ifdef ONEWAY
;
			if
			:: given[hid[0]] == 0 -> given[hid[0]] = BACK /* it says so without an answer */
			:: else
			fi;
			hs[0] = H_idle;
			hm[0] = 0;
			break
#endif
		}
		od;
progress_sent:
		n++
	:: else -> break
	od
}

active proctype receiver()
{
	byte ev, n;

	do
	:: n < K -> /* or its context ends */
		if
		:: atomic {
			may_host_d2h_hold(hs[1], hm[1]) ->
			host_d2h_hold(hs[1], hm[1], ev)
		}
		:: goto done
		fi;
		if
		:: atomic {
			ROOM(h2d) -> host_d2h_put_accept(hs[1], hm[1], ev);
			assert(ev != E_never && taken[hid[1]] == 0);
			taken[hid[1]] = TOOK;
			h2d!ACK, 1, hid[1]
		}
progress_received:
			n++
		:: atomic { host_d2h_release(hs[1], hm[1], ev); assert(ev != E_never) }
progress_left:
			skip
		fi
	:: else -> break
	od;
done:
	skip
}

/* The host's part of a mailbox: it takes what comes, whether or not it may put. */
active proctype drain()
{
	mtype t;
	byte ev, d, id;

end_drain:
	do
	:: atomic {
		d2h?t, d, id ->
		if
		:: t == DIRECT ->
			assert(id == hid[1] + 1);
			host_d2h_offer(hs[1], hm[1], ev);
			if :: ev == E_offer -> hid[1]++ :: else fi
		:: t == WITHDRAW && id == hid[1] -> host_d2h_WITHDRAW(hs[1], hm[1], ev)
		:: t == ACK && id == hid[0] && hs[0] == H_offered -> host_h2d_consumed(hs[0], hm[0], ev); outcome = ev
		:: t == ERROR && id == hid[0] && hs[0] == H_offered -> host_h2d_refused(hs[0], hm[0], ev); outcome = ev
		:: t == WITHDRAWN && id == hid[0] ->
			host_h2d_WITHDRAWN(hs[0], hm[0], ev);
			if :: ev == E_withdrawn -> outcome = ev; given[id] = BACK :: else fi
		:: else -> assert(id <= hid[d]); ev = E_stale
		fi;
		assert(ev != E_fault)
	}
	:: atomic {
		may_host_d2h_put_WITHDRAWN(hs[1], hm[1]) && ROOM(h2d) ->
		host_d2h_put_WITHDRAWN(hs[1], hm[1], ev);
		h2d!WITHDRAWN, 1, hid[1]
	}
	od
}

/* The read manager: it takes a message only where there is room for the answer. */
active proctype manager()
{
	mtype t;
	byte put, ret, d, id;

end_manager:
	do
	:: atomic {
		ROOM(d2h) && len(h2d) > 0 -> h2d?t, d, id;
		if
		:: t == DIRECT ->
			assert(id == dnext[0]);
			dev_h2d_DIRECT(ds[0], dm[0], put, ret);
			assert(put == P_nothing);
			dnext[0]++
		:: t == WITHDRAW ->
			if
			:: id == dnext[0] - 1 && ds[0] == D_message -> recall = id
			:: else
			fi
		:: t == ACK && id == dnext[1] - 1 ->
			dev_d2h_ACK_CONSUMED(ds[1], dm[1], put, ret);
			if :: ret == R_succeeds -> wrote = TOOK :: else fi
		:: t == WITHDRAWN && id == dnext[1] - 1 ->
			dev_d2h_WITHDRAWN(ds[1], dm[1], put, ret);
			if :: ret == R_fails -> wrote = BACK :: else fi
		:: else
		fi
	}
	:: atomic { /* after the processes ran */
		recall && ROOM(d2h) ->
		if
		:: recall == dnext[0] - 1 && ds[0] == D_message ->
			dev_h2d_WITHDRAW(ds[0], dm[0], put, ret);
			if :: put == P_WITHDRAWN -> d2h!WITHDRAWN, 0, recall :: else fi
		:: else
		fi;
		recall = 0
	}
	od
}

/* The process reads and writes as it likes, until it is stopped. */
active proctype process()
{
	byte put, ret, n;

	do
	:: stop -> break
	:: atomic { /* channel_read */
		!stop && ROOM(d2h) && may_dev_h2d_take(ds[0], dm[0]) ->
		assert(given[dnext[0] - 1] == 0 && last < dnext[0] - 1);
		dev_h2d_take(ds[0], dm[0], put, ret);
		last = dnext[0] - 1;
		given[last] = TOOK;
		if :: put == P_ACK_CONSUMED -> d2h!ACK, 0, last :: put == P_ERROR -> d2h!ERROR, 0, last :: else fi
	}
	:: atomic { /* channel_write */
			!stop && n < K && ROOM(d2h) -> dev_d2h_channel_write(ds[1], dm[1], put, ret);
			assert(put == P_DIRECT);
			dnext[1]++;
			wrote = 0;
			d2h!DIRECT, 1, dnext[1] - 1
		};
		if
		:: wrote
		:: atomic {
			stop && ROOM(d2h) && may_dev_d2h_stop(ds[1], dm[1]) ->
			dev_d2h_stop(ds[1], dm[1], put, ret);
			assert(put == P_WITHDRAW);
			d2h!WITHDRAW, 1, dnext[1] - 1
		};
			wrote
		fi;
		assert((wrote == TOOK) == (taken[dnext[1] - 1] == TOOK));
		assert(ds[1] == D_idle);
progress_wrote:
		n++
	od /* what lies there now the host takes back */
}

active proctype stopper()
{
	stop = true
}

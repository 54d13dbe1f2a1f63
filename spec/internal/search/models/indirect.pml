/*
 * Transfers by lists, from host to device, or with -DD2H from device to host.
 *
 * Bounds: K transfers, one after the other, of LISTS lists each in a window of WINDOW, rings of SLOTS
 * slots; REPEATS times a page is busy, FAILS times it cannot be reached; the sizes of the two ends
 * agree or not; an offer may pass its deadline; the context of the host's call may end at any time,
 * and the process may be stopped.
 * Safety: the engine touches no page that is not pinned, and none after the answer that ends a
 * transfer; no error at the host means no error at the process, and the other way round; no message
 * of an honest side is a fault for the other.
 * Progress: every call ends.
 */
#include "host.pml"
#include "device.pml"

#ifndef K
#define K 1
#endif
#ifndef LISTS
#define LISTS 2
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef REPEATS
#define REPEATS 1
#endif
#ifndef FAILS
#define FAILS 1
#endif
#ifdef D2H
#define HOST(x) host_d2h_##x
#define DEV(x) dev_d2h_##x
#define MAY_HOST(x) may_host_d2h_##x
#define MAY_DEV(x) may_dev_d2h_##x
#else
#define HOST(x) host_h2d_##x
#define DEV(x) dev_h2d_##x
#define MAY_HOST(x) may_host_h2d_##x
#define MAY_DEV(x) may_dev_h2d_##x
#endif

mtype = { BEGIN, LIST, READY, MOVING, REPEAT, DONE, FIN, ABORT, ABORTED, ERROR, WITHDRAW, WITHDRAWN };

chan h2d = [SLOTS] of { mtype, byte, byte }; /* type, id, list */
chan d2h = [SLOTS] of { mtype, byte, byte };

byte hs, hm, hid; /* the host's half … */
byte sent, acked; /* … and its ledger */
bool ready, aborting, offers;
byte outcome; /* what the host's call knows; E_none: nothing yet */
bool pinned;
bool committed[K + 2]; /* FIN was put, by id */

byte ds;
short dm;
byte dnext = 1;
byte came, finished; /* lists at the device, and those that moved */
bool listed, busy, repeat; /* a list lies beside the offer; the engine is at work; a REPEAT is out */
byte returned; /* of the process's call; R_stays: it has not returned */
bool in_call, stop, no_more;
byte repeats, fails;

#define ROOM(c) (len(c) < SLOTS)

inline dput(t, k)
{
	d2h!t, dnext - 1, k
}

/* What a transition of the device puts. */
inline answer()
{
	if
	:: put == P_ACK_READY -> dput(READY, 0)
	:: put == P_ACK_MOVING -> dput(MOVING, finished)
	:: put == P_ACK_REPEAT -> dput(REPEAT, finished)
	:: put == P_DONE -> dput(DONE, 0)
	:: put == P_ERROR -> dput(ERROR, 0)
	:: put == P_ABORTED -> dput(ABORTED, 0)
	:: put == P_WITHDRAWN -> dput(WITHDRAWN, 0)
	:: put == P_WITHDRAW -> dput(WITHDRAW, 0)
	:: put == P_IND_BEGIN -> dput(BEGIN, 0)
	:: else
	fi;
	if
	:: ret != R_stays && in_call ->
		assert(returned == R_stays);
		assert(ret == R_fails || committed[dnext - 1]);
		returned = ret
	:: else
	fi
}

/* ---- the host ---- */

inline end(ev2)
{
	outcome = ev2;
	printf("MSC: the buffer is given back\n");
	assert(!busy); /* the buffer is quiet */
	pinned = false
}

active proctype caller()
{
	byte ev, n;

end_caller:
	do
	:: n < K ->
#ifdef D2H
		atomic {
			may_host_d2h_hold(hs, hm) -> host_d2h_hold(hs, hm, ev)
		};
		if
		:: atomic { host_d2h_release(hs, hm, ev) } /* another size, or kind */
progress_left:
			goto next
		:: atomic {
			ROOM(h2d) -> host_d2h_put_transfer(hs, hm, ev);
			assert(ev != E_never);
			sent = 1; acked = 0; ready = true; aborting = false; outcome = E_none;
			pinned = true;
			h2d!LIST, hid, 0
		}
		fi;
#else
		atomic {
			len(h2d) < SLOTS - 1 -> host_h2d_put_transfer(hs, hm, ev);
			assert(ev != E_never);
			hid++;
			sent = 1; acked = 0; ready = false; aborting = false; outcome = E_none;
			pinned = true;
			h2d!BEGIN, hid, 0;
			h2d!LIST, hid, 0
		};
#endif
		do
		:: atomic { outcome != E_none && outcome != E_done -> break }
		:: atomic { /* the commit */
			outcome == E_done && ROOM(h2d) ->
			HOST(put_FIN)(hs, hm, ev);
			assert(ev != E_never);
			committed[hid] = true;
			h2d!FIN, hid, 0;
			end(E_delivered)
		}
		:: atomic { /* lists that the window allows */
			outcome == E_none && hs == H_moving && !aborting && ready && sent < LISTS && sent - acked < WINDOW && ROOM(h2d) ->
			h2d!LIST, hid, sent;
			sent++
		}
		:: atomic { /* the context ends */
			outcome != E_delivered && !aborting && ROOM(h2d) && MAY_HOST(put_ABORT)(hs, hm) ->
			HOST(put_ABORT)(hs, hm, ev);
			aborting = true;
			outcome = E_none;
			h2d!ABORT, hid, 0
#ifdef LAZYABORT
			; printf("MSC: the buffer is given back\n"); pinned = false; outcome = E_aborted
#endif
		}
#ifndef D2H
		:: atomic { /* or the audit asks for the offer */
			outcome == E_none && !aborting && ROOM(h2d) && may_host_h2d_put_WITHDRAW(hs, hm) ->
			host_h2d_put_WITHDRAW(hs, hm, ev);
			h2d!WITHDRAW, hid, 0
		}
#endif
		od;
progress_call:
		n++;
next:
		skip
	:: else -> break
	od;
	no_more = true
}

/* What the host's ledger makes of a record of the transfer that moves. */
inline record(t, k)
{
	if
	:: t == READY || t == MOVING ->
		assert(sent > 0 && k <= sent && (t == MOVING || !ready));
		ready = true;
		acked = k;
		hm = hm | M_accepted;
		if
		:: aborting -> HOST(crossed_the_ABORT)(hs, hm, ev)
		:: else -> HOST(progress)(hs, hm, ev)
		fi
	:: t == REPEAT ->
		assert(k < sent);
		acked = k;
		hm = hm | M_accepted;
		if
		:: aborting -> HOST(crossed_the_ABORT)(hs, hm, ev)
		:: else -> sent = k; ready = true; HOST(progress)(hs, hm, ev)
		fi
	:: t == DONE ->
		assert(sent == LISTS);
		if
		:: aborting -> HOST(crossed_the_ABORT)(hs, hm, ev)
		:: else -> HOST(DONE)(hs, hm, ev); outcome = ev
		fi
	:: t == ERROR -> HOST(ERROR)(hs, hm, ev); end(ev)
	:: t == ABORTED -> assert(aborting); HOST(ABORTED)(hs, hm, ev); end(ev)
	fi
}

active proctype drain()
{
	mtype t;
	byte ev, id, k;

end_drain:
	do
	:: atomic {
		d2h?t, id, k ->
		ev = E_stale;
		if
#ifdef D2H
		:: t == BEGIN ->
			assert(id == hid + 1);
			host_d2h_offer(hs, hm, ev);
			if :: ev == E_offer -> hid++ :: else fi
		:: t == WITHDRAW && id == hid -> host_d2h_WITHDRAW(hs, hm, ev)
#else
		:: t == WITHDRAWN && id == hid ->
			host_h2d_WITHDRAWN(hs, hm, ev);
			if :: ev == E_withdrawn -> end(ev) :: else fi
#endif
		:: t != BEGIN && t != WITHDRAW && t != WITHDRAWN && id == hid ->
			if
			:: hs == H_moving -> record(t, k)
			:: else -> HOST(record)(hs, hm, ev)
			fi
		:: else -> assert(id < hid)
		fi;
		assert(ev != E_fault)
	}
#ifdef D2H
	:: atomic {
		may_host_d2h_put_WITHDRAWN(hs, hm) && ROOM(h2d) ->
		host_d2h_put_WITHDRAWN(hs, hm, ev);
		h2d!WITHDRAWN, hid, 0
	}
#endif
	od
}

/* ---- the device ---- */

/* A list of a transfer that moves. */
inline list(k)
{
	if
	:: k != came && repeat -> put = P_dropped /* until that list comes again */
	:: k != came && !repeat -> DEV(bad_IND_LIST)(ds, dm, put, ret); assert((dm & N_ending) == 0)
#ifndef D2H
	:: k == came && k == 0 && LISTS > 1 && !repeat -> dev_h2d_IND_LIST_0_of_several(ds, dm, put, ret); came++; answer()
#endif
	:: else ->
		DEV(IND_LIST)(ds, dm, put, ret);
		if :: put != P_dropped -> came++; repeat = false :: else fi
	fi
}

active proctype manager()
{
	mtype t;
	byte put, ret, id, k;

end_manager:
	do
	:: atomic {
		ROOM(d2h) && len(h2d) > 0 -> h2d?t, id, k;
		put = P_nothing;
		ret = R_stays;
		if
#ifndef D2H
		:: t == BEGIN ->
			assert(id == dnext);
			dev_h2d_IND_BEGIN(ds, dm, put, ret);
			assert(put == P_nothing);
			dnext++;
			listed = false
		:: t == WITHDRAW && id == dnext - 1 -> dev_h2d_WITHDRAW(ds, dm, put, ret); answer()
#else
		:: t == WITHDRAWN && id == dnext - 1 -> dev_d2h_WITHDRAWN(ds, dm, put, ret); answer()
#endif
		:: t == LIST && id == dnext - 1 && ds == D_offered ->
			DEV(IND_LIST)(ds, dm, put, ret);
#ifdef D2H
			came = 0; finished = 0; repeat = false;
			list(k)
#else
			assert(put == P_nothing);
			listed = true
#endif
		:: t == LIST && id == dnext - 1 && ds == D_moving -> list(k)
		:: t == FIN && id == dnext - 1 -> DEV(FIN)(ds, dm, put, ret); assert(put != P_dropped); answer()
		:: t == ABORT && id == dnext - 1 -> DEV(ABORT)(ds, dm, put, ret); answer()
		:: else -> assert(id < dnext)
		fi
	}
	:: atomic { /* the end of a transfer that ends early */
#ifdef NAIVE
		ROOM(d2h) && MAY_DEV(quiet)(ds, dm) ->
#else
		!busy && ROOM(d2h) && MAY_DEV(quiet)(ds, dm) ->
#endif
		DEV(quiet)(ds, dm, put, ret);
		answer()
	}
	od
}

/* The DMA engine: a list is a piece. */
active proctype engine()
{
	byte put, ret;

end_engine:
	do
	:: atomic {
		ds == D_moving && (dm & N_ending) == 0 && finished < came && !busy ->
		busy = true;
		printf("MSC: a list begins to move\n")
	};
		assert(pinned);
		atomic {
			ROOM(d2h) -> printf("MSC: it has moved\n");
			assert(pinned);
			busy = false;
			put = P_nothing;
			ret = R_stays;
			if
			:: dm & N_ending
			:: (dm & N_ending) == 0 ->
				finished++;
				if
				:: finished == LISTS -> DEV(done)(ds, dm, put, ret)
				:: else -> DEV(moved)(ds, dm, put, ret)
				fi
			:: (dm & N_ending) == 0 && repeats < REPEATS ->
				repeats++;
				came = finished;
				repeat = true;
				DEV(busy)(ds, dm, put, ret)
			:: (dm & N_ending) == 0 && fails < FAILS ->
				fails++;
				DEV(failed)(ds, dm, put, ret)
			fi;
			answer()
		}
	od
}

active proctype process()
{
	byte put, ret;

end_process:
	do
#ifdef D2H
	:: atomic {
		!stop && ROOM(d2h) ->
		in_call = true;
		returned = R_stays;
		dev_d2h_channel_write_ind(ds, dm, put, ret);
		assert(put == P_IND_BEGIN);
		dnext++;
		answer()
	};
		if
		:: returned != R_stays
		:: atomic {
			stop && ROOM(d2h) && may_dev_d2h_stop(ds, dm) ->
			dev_d2h_stop(ds, dm, put, ret);
			answer()
		};
end_asked:
			returned != R_stays
		fi;
#else
	:: atomic {
		!stop && ROOM(d2h) && ds == D_offered ->
		in_call = true;
		returned = R_stays;
		if
		:: true -> dev_h2d_take(ds, dm, put, ret);
			came = 0; finished = 0; repeat = false;
			if
			:: listed -> listed = false; list(0)
			:: else
			fi
		:: true -> dev_h2d_read_of_another_size(ds, dm, put, ret); answer()
		:: true -> dev_h2d_read_of_another_kind(ds, dm, put, ret); answer()
		fi
	};
		returned != R_stays;
	:: atomic {
		ROOM(d2h) && may_dev_h2d_deadline(ds, dm) ->
		in_call = false;
		dev_h2d_deadline(ds, dm, put, ret);
		answer()
	};
#endif
progress_returned:
		in_call = false
	:: stop -> break
	od
}

active proctype stopper()
{
	no_more;
	stop = true
}

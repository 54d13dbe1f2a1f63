/*
 * A channel between two hosts: what one gives the device offers to the other, under an id of its own.
 * Hosts and ends follow their rows. Written by hand are rings, calls, news on their way between the
 * ends, the engine, and the device's waits, after firmware/core/forward.c and transfer.c. The engine
 * is a process: whatever the device does may happen while a list moves.
 *
 * Bounds: K messages, or with -DTRANSFERS transfers of LISTS lists at both hosts, one way; rings of SLOTS
 * slots. Any call may end early. TROUBLES times a page cannot be reached, a host detaches, or the
 * receiving host closes its half or stops answering. The giving host may close the channel at the end.
 * Safety: an offer has one outcome at both hosts, unless the receiving one stops answering; messages
 * arrive once and in order; the engine touches no page that was given back; no message of the device
 * is a fault.
 * Progress: every call ends: by the other host, its own withdrawal, or the device that waits no longer
 * for a host that does not answer.
 */
#include "host.pml"
#include "ends.pml"

#ifndef K
#ifdef TRANSFERS
#define K 1
#else
#define K 2
#endif
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef LISTS
#ifdef TRANSFERS
#define LISTS 1
#else
#define LISTS 0
#endif
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef TROUBLES
#ifdef TRANSFERS
#define TROUBLES 0
#else
#define TROUBLES 1
#endif
#endif
#ifndef FIRST
#define FIRST 3 /* the receiving host has had so many offers of others */
#endif

mtype = { DIRECT, BEGIN, LIST, READY, MOVING, DONE, FIN, ABORT, ABORTED, ACK, ERROR, WITHDRAW, WITHDRAWN, CLOSE };

chan from_a = [SLOTS] of { mtype, byte, byte }; /* type, id, number of the offer or of a list */
chan to_a = [SLOTS] of { mtype, byte, byte };
chan from_b = [SLOTS] of { mtype, byte, byte };
chan to_b = [SLOTS] of { mtype, byte, byte };

byte as, am, aid, a_sent, a_acked; /* the h2d half of host a, and its ledger */
bool a_ready, a_aborting, a_pinned;
byte outcome; /* of its call; E_none: nothing yet */
bool over; /* for a: the channel is closed */
bool left; /* a detaches */

byte bs, bm, bid = FIRST, b_sent, b_acked; /* the d2h half of host b */
bool b_aborting, b_pinned;
byte b_outcome;
byte number; /* of what b was offered last */
bool silent, shut, gone; /* b does not answer any more; it closed the half; it detaches */

bool took[K + 1], failed[K + 1]; /* by b; for a */
byte last;
byte troubles;

#define TROUBLE (troubles < TROUBLES)
#define ROOM(c) (len(c) < SLOTS)

/* ---- host a ---- */

inline a_ends(ev2)
{
	outcome = ev2;
	a_pinned = false
}

active proctype sender()
{
	byte ev, n;

	do
	:: n < K && !over && !left ->
		atomic {
			ROOM(from_a) || left ->
			if
			:: left -> goto out
			:: else
			fi;
			n++;
			aid++;
			outcome = E_none;
#if LISTS
			host_h2d_put_transfer(as, am, ev);
			a_sent = 0; a_acked = 0; a_ready = false; a_aborting = false; a_pinned = true;
			from_a!BEGIN, aid, n
#else
			host_h2d_put_message(as, am, ev);
			from_a!DIRECT, aid, n
#endif
			;
			assert(ev != E_never)
		};
		do
		:: atomic {
			outcome != E_none ->
			assert(outcome != E_delivered || took[n]);
			assert(silent || outcome == E_delivered || !took[n]);
			failed[n] = outcome != E_delivered;
			break
		}
		:: left -> goto out
#if LISTS
		:: atomic {
			outcome == E_none && !left && as == H_moving && !a_aborting && a_sent < LISTS &&
			(a_sent == 0 || a_ready && a_sent - a_acked < WINDOW) && ROOM(from_a) ->
			from_a!LIST, aid, a_sent;
			a_sent++
		}
		:: atomic { /* its context ends */
			outcome == E_none && !left && !a_aborting && ROOM(from_a) && may_host_h2d_put_ABORT(as, am) ->
			host_h2d_put_ABORT(as, am, ev);
			a_aborting = true;
			from_a!ABORT, aid, 0
		}
#else
		:: atomic { /* its context ends */
			outcome == E_none && !left && ROOM(from_a) && may_host_h2d_put_WITHDRAW(as, am) ->
			host_h2d_put_WITHDRAW(as, am, ev);
			from_a!WITHDRAW, aid, 0
		}
#endif
		od;
progress_sent:
		skip
	:: atomic { n == K && !left && ROOM(from_a) -> from_a!CLOSE, 0, 0 }; break
	:: n == K || over || left -> break
	od;
out:
	skip
}

active proctype a_leaver()
{
	if
	:: atomic { TROUBLE -> troubles++; left = true; printf("MSC: a detaches\n") }
	:: true
	fi
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
		:: t == CLOSE -> over = true
		:: t == WITHDRAWN && id == aid ->
			host_h2d_WITHDRAWN(as, am, ev);
			if :: ev == E_withdrawn -> a_ends(ev) :: else fi
		:: t != CLOSE && t != WITHDRAWN && id == aid && as == H_offered ->
			if
			:: t == ACK -> host_h2d_consumed(as, am, ev); a_ends(ev)
			:: t == ERROR -> host_h2d_refused(as, am, ev); a_ends(ev)
			fi
		:: t != CLOSE && t != WITHDRAWN && id == aid && as == H_moving ->
			if
			:: t == READY || t == MOVING ->
				assert(n <= a_sent && (t == MOVING || !a_ready));
				a_ready = true; a_acked = n; am = am | M_accepted;
				if
				:: a_aborting -> host_h2d_crossed_the_ABORT(as, am, ev)
				:: else -> host_h2d_progress(as, am, ev)
				fi
			:: t == ACK -> assert(a_sent == LISTS); host_h2d_consumed(as, am, ev); a_ends(ev)
			:: t == ERROR -> host_h2d_ERROR(as, am, ev); a_ends(ev)
			:: t == ABORTED -> assert(a_aborting); host_h2d_ABORTED(as, am, ev); a_ends(ev)
			fi
		:: else -> assert(id < aid)
		fi;
		assert(ev != E_fault);
		t = 0; ev = 0; id = 0; n = 0
	}
	od
}

/* ---- the device's two ends ---- */

byte ea = W_open, eb = W_open; /* the ends */
byte gs, ts; /* the h2d half of a's end, the d2h half of b's … */
short gm, tm; /* … and their marks */
byte ida, idb = FIRST;
short a_news, b_news; /* that an end has not handled */
byte status; /* of b's answer */
byte offer, back, taken; /* numbers: what a offers, asks back; what b's end told its host of */
bool a_closes, b_closes; /* CLOSE is due */
bool paired, until, committed; /* of a transfer: the ends know of each other; a waits for b; b took it */
byte came_a, came_b, finished; /* lists */
byte busy; /* the engine */
bool greets, tells; /* a is to hear of its first list, and of what moved */
bool a_over, b_over; /* the device has forgotten the host */
byte put, st, put2, st2;
short news, news2, scratch;

#ifdef HASTY_STOP
#define HASTY true
#else
#define HASTY false
#endif

/* What a's end puts, and tells b's. */
inline after_a()
{
	if
	:: put == P_ACK_CONSUMED -> to_a!ACK, ida, 0
	:: put == P_ERROR -> to_a!ERROR, ida, 0
	:: put == P_ABORTED -> to_a!ABORTED, ida, 0
	:: put == P_WITHDRAWN -> to_a!WITHDRAWN, ida, 0
	:: put == P_ACK_READY -> greets = true
	:: put == P_ACK_MOVING -> to_a!MOVING, ida, finished
	:: put == P_CLOSE -> to_a!CLOSE, 0, 0
	:: else
	fi;
	if
	:: (news & N_stops) && paired && ts == D_commit && !HASTY -> until = true /* that host decides */
	:: (news & N_stops) && paired && ts == D_commit && HASTY -> paired = false
	:: (news & N_stops) && paired && ts != D_commit -> end_d2h_other_stops(ts, tm, put2, st2, news2)
	:: else
	fi;
	if
	:: news & N_gives_up -> paired = false; until = false; a_news = a_news | N_gone
	:: else
	fi;
	if
	:: (news & N_withdrawn) && ea != W_alone -> back = offer
	:: else
	fi;
	if
	:: eb != W_none && ea != W_alone -> b_news = b_news | (news & (N_offered | N_withdrawn | N_closed))
	:: else
	fi
}

/* A list of a's transfer that moves. */
inline list_a(k)
{
	assert(k == came_a);
	if
	:: k == 0 && LISTS > 1 -> end_h2d_IND_LIST_0_of_several(gs, gm, put, st, news)
	:: else -> end_h2d_IND_LIST(gs, gm, put, st, news)
	fi;
	if :: put != P_dropped -> came_a++; if :: put == P_ACK_READY -> greets = true :: else fi :: else fi
}

/* b's host takes the transfer. */
inline begin_to_move()
{
	paired = true; committed = false; until = false; greets = false; tells = false;
	came_a = 0; came_b = 0; finished = 0;
	scratch = gm;
	end_h2d_other_takes_it_by_lists(gs, gm, put, st, news);
	if
	:: scratch & K_listed -> list_a(0)
	:: else
	fi;
	if
	:: scratch & K_aborting ->
		end_h2d_ABORT(gs, gm, put, st, news);
		end_d2h_other_stops(ts, tm, put, st, news)
	:: else
	fi;
	scratch = 0; put = 0; news = 0
}

/* What b's end puts, and tells a's; before it was in a state. */
inline after_b(before)
{
	if
	:: put == P_DIRECT -> to_b!DIRECT, idb, offer
	:: put == P_IND_BEGIN -> to_b!BEGIN, idb, offer
	:: put == P_WITHDRAW -> to_b!WITHDRAW, idb, 0
	:: put == P_ERROR -> to_b!ERROR, idb, 0
	:: put == P_ABORTED -> to_b!ABORTED, idb, 0
	:: put == P_DONE -> to_b!DONE, idb, 0
	:: put == P_ACK_MOVING -> to_b!MOVING, idb, finished
	:: put == P_CLOSE -> to_b!CLOSE, 0, 0
	:: else
	fi;
	if
	:: (news & N_answered) && eb != W_alone -> status = st; a_news = a_news | N_answered
	:: else
	fi;
	if
	:: (news & N_closed) && eb != W_alone -> a_news = a_news | N_closed
	:: else
	fi;
	if
	:: (news & N_took_it) && paired -> paired = false; until = false; committed = true
	:: (news & N_stops) && paired ->
		end_h2d_other_stops(gs, gm, put2, st2, news2);
		if :: before == D_commit -> paired = false; until = false :: else fi
	:: else
	fi;
	if
	:: news & N_takes_it -> begin_to_move()
	:: else
	fi
}

/* Notify the other end that one is over. */
inline a_is_over() { if :: eb != W_none && (news & N_gone) -> b_news = b_news | N_gone :: else fi }
inline b_is_over() { if :: ea != W_none && (news & N_gone) -> a_news = a_news | N_gone :: else fi }

inline forget() { put = 0; st = 0; news = 0; put2 = 0; st2 = 0; news2 = 0; id = 0; n = 0; before = 0 }

#define SPEAKS_A (ROOM(to_a) && !left && !a_closes)
#define SPEAKS_B (ROOM(to_b) && !gone && !b_closes)
#define STARTED 1 /* busy: a list moves */
#define QUIET 2 /* it has moved, and is not accounted for yet */
#ifdef NAIVE
#define STILL true
#else
#define STILL (busy != STARTED)
#endif
#define THERE (eb == W_open && ea == W_open && gs == D_offered && taken == offer)

active proctype take_a()
{
	mtype t;
	byte id, n, before;

end_take_a:
	do
	:: atomic {
		!left && ROOM(to_a) && !a_closes && len(from_a) > 0 -> from_a?t, id, n;
		if
		:: (t == DIRECT || t == BEGIN) && gs == D_idle ->
			assert(id == ida + 1);
			ida++;
			if
			:: t == DIRECT -> end_h2d_DIRECT(gs, gm, put, st, news)
			:: else -> end_h2d_IND_BEGIN(gs, gm, put, st, news)
			fi;
			if :: news & N_offered -> offer = n :: else fi
		:: (t == DIRECT || t == BEGIN) && gs != D_idle -> assert(false)
		:: t == LIST && id == ida && gs == D_moving && paired && !(gm & K_ending) -> list_a(n); put = 0
		:: t == LIST && id == ida && gs == D_offered -> end_h2d_IND_LIST(gs, gm, put, st, news)
		:: t == WITHDRAW && id == ida && (gs != D_moving || paired) -> end_h2d_WITHDRAW(gs, gm, put, st, news)
		:: t == ABORT && id == ida && (gs != D_moving || paired) -> end_h2d_ABORT(gs, gm, put, st, news)
		:: t == CLOSE -> /* of both halves */
			end_h2d_CLOSE(gs, gm, put, st, news)
		:: else
		fi;
		after_a();
		if
		:: (gm & K_shut) && gs != D_moving && (ea == W_open || ea == W_alone) ->
			whole_over(ea, scratch, put, news);
			a_closes = true;
			a_is_over()
		:: else
		fi;
		forget(); t = 0
	}
	od
}

active proctype take_b()
{
	mtype t;
	byte id, n, before;

end_take_b:
	do
	:: atomic { /* of what a host that detached wrote last, what it received counts */
		ROOM(to_b) && !b_over && !b_closes && len(from_b) > 0 -> from_b?t, id, n;
		before = ts;
		if
#ifdef UNREAD
		:: gone
#endif
		:: gone && t != ACK && t != FIN
		:: t == ACK && id == idb -> end_d2h_ACK_CONSUMED(ts, tm, put, st, news)
		:: !gone && t == ERROR && id == idb ->
			end_d2h_ERROR(ts, tm, put, st, news);
			if :: news & N_answered -> st = S_ESIZE :: else fi
		:: !gone && t == WITHDRAWN && id == idb -> end_d2h_WITHDRAWN(ts, tm, put, st, news)
		:: !gone && t == LIST && id == idb && ts == D_offered && !THERE -> end_d2h_IND_LIST_or_EAGER_too_late(ts, tm, put, st, news)
		:: !gone && t == LIST && id == idb && ts == D_offered && THERE ->
			end_d2h_IND_LIST(ts, tm, put, st, news);
			after_b(before);
			end_d2h_IND_LIST(ts, tm, put, st, news);
			if :: put != P_dropped -> came_b++ :: else fi
		:: !gone && t == LIST && id == idb && ts == D_moving ->
			end_d2h_IND_LIST(ts, tm, put, st, news);
			if :: put != P_dropped -> assert(n == came_b); came_b++ :: else fi
		:: t == FIN && id == idb -> end_d2h_FIN(ts, tm, put, st, news)
		:: !gone && t == ABORT && id == idb -> end_d2h_ABORT(ts, tm, put, st, news)
		:: !gone && t == CLOSE -> end_d2h_CLOSE(ts, tm, put, st, news)
		:: else
		fi;
		after_b(before);
		forget(); t = 0
	}
	od
}

/* The news of the ends, each in order. */
active proctype hear_a()
{
	byte id, n, before;

end_hear_a:
	do
	:: atomic {
		SPEAKS_A && ea == W_open && (a_news & (N_answered | N_closed)) ->
		if
		:: a_news & N_answered ->
			a_news = a_news & ~N_answered;
			if
			:: status == S_OK -> end_h2d_other_took_it(gs, gm, put, st, news)
			:: status == S_EWITHDRAWN -> end_h2d_other_gave_it_back(gs, gm, put, st, news)
			:: status == S_ECLOSED || status == S_ESIZE -> end_h2d_other_refused_it(gs, gm, put, st, news)
			:: else -> end_h2d_other_failed_it(gs, gm, put, st, news)
			fi;
			status = 0
		:: else ->
			a_news = a_news & ~N_closed;
			end_h2d_other_closed(gs, gm, put, st, news)
		fi;
		after_a();
		forget()
	}
	:: atomic { /* the other end is gone: first what moves stops */
		SPEAKS_A && ea == W_open && a_news == N_gone && (gs != D_moving || !(gm & K_ending)) ->
		before = gs;
		a_closes = !(gm & K_closed) && gs != D_moving;
		end_h2d_other_gone(gs, gm, put, st, news);
		after_a();
		if
		:: before != D_moving ->
			a_news = 0;
			whole_other_gone(ea, scratch, put, news);
			a_is_over()
		:: else
		fi;
		forget()
	}
	:: atomic { ROOM(to_a) && a_closes -> a_closes = false; to_a!CLOSE, 0, 0 }
	od
}

active proctype hear_b()
{
	byte id, n, before;

end_hear_b:
	do
	:: atomic {
		SPEAKS_B && eb == W_open && (b_news & (N_offered | N_withdrawn | N_closed)) &&
		(!(b_news & N_offered) || ts != D_moving) ->
		before = ts;
		if
		:: b_news & N_offered ->
			b_news = b_news & ~N_offered;
#if LISTS
			end_d2h_other_transfer(ts, tm, put, st, news);
#else
			end_d2h_other_message(ts, tm, put, st, news);
#endif
			if
			:: !(news & N_answered) -> taken = offer; idb++
#ifdef ONE_ID
				; idb = ida
#endif
			:: else
			fi
		:: !(b_news & N_offered) && (b_news & N_withdrawn) ->
			b_news = b_news & ~N_withdrawn;
			if
			:: back == taken -> end_d2h_other_withdraws(ts, tm, put, st, news)
			:: else
			fi
		:: else ->
			b_news = b_news & ~N_closed;
			end_d2h_other_closed(ts, tm, put, st, news)
		fi;
		after_b(before);
		forget()
	}
	:: atomic {
		SPEAKS_B && eb == W_open && b_news == N_gone && (ts != D_moving || !(tm & K_ending)) ->
		before = ts;
		b_closes = !(tm & K_closed) && ts != D_moving;
		end_d2h_other_gone(ts, tm, put, st, news);
		after_b(before);
		if
		:: before != D_moving ->
			b_news = 0;
			whole_other_gone(eb, scratch, put, news);
			b_is_over()
		:: else
		fi;
		forget()
	}
	:: atomic { ROOM(to_b) && b_closes -> b_closes = false; to_b!CLOSE, 0, 0 }
	od
}

/* What time brings, and hosts that detach. */
active proctype device()
{
	byte id, n, before;

end_device:
	do
	:: atomic { /* nobody took the offer in time */
		SPEAKS_A && (gs == D_message || gs == D_offered) && !(gm & K_asked_back) ->
		end_h2d_deadline(gs, gm, put, st, news);
		after_a();
		forget()
	}
	:: atomic { /* two seconds after it asked a host that does not answer */
		silent && SPEAKS_A && ea == W_open && len(from_b) == 0 && len(to_b) == 0 && a_news == 0 && b_news == 0 &&
		((gs == D_message || gs == D_offered) && (gm & K_asked_back) || gs == D_moving && until) ->
		printf("MSC: waits no longer\n");
		end_h2d_deadline(gs, gm, put, st, news);
		after_a();
		forget()
	}
	:: atomic { /* nothing moves any more */
		left && !a_over && STILL ->
		a_over = true; a_pinned = false; paired = false;
		whole_detach(ea, scratch, put, news);
		a_is_over();
		forget()
	}
	:: atomic { /* … and nothing of it is read */
		gone && !b_over && len(from_b) == 0 && STILL ->
		b_over = true; b_pinned = false;
		before = ts;
		end_d2h_host_gone(ts, tm, put, st, news);
		after_b(before);
		paired = false;
		whole_detach(eb, scratch, put, news);
		b_is_over();
		forget()
	}
#if LISTS
	:: atomic {
		ts == D_moving && gs == D_moving && paired && !(tm & K_ending) && !busy && finished < came_a && finished < came_b ->
		busy = STARTED;
		printf("MSC: starts the engine\n")
	}
	:: atomic {
		busy == QUIET && (ROOM(to_b) || gone || (tm & K_ending)) ->
		busy = 0;
		before = ts;
		if
		:: (tm & K_ending) || gone
		:: !(tm & K_ending) && !gone ->
			finished++;
			if
			:: finished == LISTS -> end_d2h_done(ts, tm, put, st, news)
			:: else -> tells = true; end_d2h_moved(ts, tm, put, st, news)
			fi;
			after_b(before)
		:: !(tm & K_ending) && !gone && TROUBLE ->
			troubles++;
			end_d2h_failed(ts, tm, put, st, news);
			after_b(before)
		:: !(tm & K_ending) && !gone && TROUBLE ->
			troubles++;
			end_h2d_failed(gs, gm, put, st, news);
			after_a()
		fi;
		forget()
	}
	:: atomic { ts == D_moving && (tm & K_ending) && paired && STILL -> paired = false; until = false }
	:: atomic { /* b's half ends */
		SPEAKS_B && ts == D_moving && (tm & K_ending) && !paired && STILL ->
		before = ts;
		end_d2h_quiet(ts, tm, put, st, news);
		after_b(before);
		forget()
	}
	:: atomic { /* a's half ends */
		SPEAKS_A && gs == D_moving && !paired ->
		if
		:: committed -> end_h2d_other_took_it(gs, gm, put, st, news)
		:: else -> end_h2d_quiet(gs, gm, put, st, news)
		fi;
		assert(put != P_dropped);
		after_a();
		forget()
	}
	:: atomic { SPEAKS_A && paired && greets -> greets = false; tells = false; to_a!READY, ida, finished }
	:: atomic {
		SPEAKS_A && paired && !greets && tells -> tells = false;
		end_h2d_moved(gs, gm, put, st, news);
		after_a();
		forget()
	}
#endif
	od
}

#if LISTS
/* The engine reads a list of the one host, and writes to the pages of the other. */
active proctype engine()
{
end_engine:
	do
	:: atomic {
		busy == STARTED -> busy = QUIET;
		assert(a_pinned && b_pinned);
		printf("MSC: a list has moved\n")
	}
	od
}
#endif

/* ---- host b ---- */

#define B_PUTS (ROOM(from_b) && !gone)

active proctype receiver()
{
	byte ev;

end_receiver:
	do
	:: atomic { !silent && !shut && !gone && may_host_d2h_hold(bs, bm) -> host_d2h_hold(bs, bm, ev) };
		if
#if LISTS
		:: atomic {
			B_PUTS -> host_d2h_put_transfer(bs, bm, ev);
			assert(ev != E_never);
			b_sent = 1; b_acked = 0; b_aborting = false; b_outcome = E_none; b_pinned = true;
			from_b!LIST, bid, 0
		};
			do
			:: atomic { b_outcome != E_none && b_outcome != E_done -> break }
			:: atomic {
				b_outcome == E_done && B_PUTS ->
				host_d2h_put_FIN(bs, bm, ev);
				assert(ev != E_never && !took[number] && !failed[number] && number > last);
				took[number] = true; last = number;
				from_b!FIN, bid, 0;
				b_pinned = false;
				break
			}
			:: atomic {
				b_outcome == E_none && bs == H_moving && !b_aborting && b_sent < LISTS && b_sent - b_acked < WINDOW && B_PUTS ->
				from_b!LIST, bid, b_sent;
				b_sent++
			}
			:: atomic {
				!b_aborting && B_PUTS && may_host_d2h_put_ABORT(bs, bm) ->
				host_d2h_put_ABORT(bs, bm, ev);
				b_aborting = true; b_outcome = E_none;
				from_b!ABORT, bid, 0
			}
			:: silent || gone -> break
			:: atomic { TROUBLE && !silent && !gone -> troubles++; silent = true; printf("MSC: answers no more\n") }; break
			od;
progress_received:
			b_outcome = E_none
#else
		:: atomic {
			B_PUTS -> host_d2h_put_accept(bs, bm, ev);
			assert(ev != E_never && !took[number] && !failed[number] && number > last);
			took[number] = true; last = number;
			from_b!ACK, bid, 0
		}
#endif
		:: atomic { B_PUTS -> host_d2h_put_refuse(bs, bm, ev); assert(ev != E_never); from_b!ERROR, bid, 0 }
		:: atomic { host_d2h_release(bs, bm, ev); assert(ev != E_never) }
		:: gone
		fi
	:: atomic { TROUBLE && !silent && !shut && !gone -> troubles++; silent = true; printf("MSC: answers no more\n") }
	:: atomic { TROUBLE && !silent && !shut && B_PUTS && may_host_d2h_put_CLOSE(bs, bm) ->
		troubles++;
		host_d2h_put_CLOSE(bs, bm, ev);
		shut = true;
		from_b!CLOSE, 0, 0
	}
	od
}

active proctype b_leaver()
{
	if
	:: atomic { TROUBLE && !silent -> troubles++; gone = true; printf("MSC: b detaches\n") }
	:: true
	fi
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
		:: t == CLOSE
		:: t == DIRECT || t == BEGIN ->
			assert(id == bid + 1);
			host_d2h_offer(bs, bm, ev);
			bid++;
			if :: ev == E_offer -> number = n :: else fi
		:: t == WITHDRAW && id == bid -> host_d2h_WITHDRAW(bs, bm, ev)
		:: t != CLOSE && t != DIRECT && t != BEGIN && t != WITHDRAW && id == bid && bs == H_moving ->
			if
			:: t == MOVING ->
				assert(n <= b_sent);
				b_acked = n;
				if
				:: b_aborting -> host_d2h_crossed_the_ABORT(bs, bm, ev)
				:: else -> host_d2h_progress(bs, bm, ev)
				fi
			:: t == DONE ->
				assert(b_sent == LISTS);
				if
				:: b_aborting -> host_d2h_crossed_the_ABORT(bs, bm, ev)
				:: else -> host_d2h_DONE(bs, bm, ev); b_outcome = ev
				fi
			:: t == ERROR -> host_d2h_ERROR(bs, bm, ev); b_outcome = ev; b_pinned = false
			:: t == ABORTED -> assert(b_aborting); host_d2h_ABORTED(bs, bm, ev); b_outcome = ev; b_pinned = false
			fi
		:: t != CLOSE && t != DIRECT && t != BEGIN && t != WITHDRAW && id == bid && bs != H_moving ->
			host_d2h_record(bs, bm, ev);
			if :: ev == E_failed || ev == E_aborted -> b_pinned = false :: else fi
		:: else -> assert(id < bid)
		fi;
		assert(ev != E_fault);
		t = 0; ev = 0; id = 0; n = 0
	}
	:: atomic {
		!silent && may_host_d2h_put_WITHDRAWN(bs, bm) && B_PUTS ->
		host_d2h_put_WITHDRAWN(bs, bm, ev);
		from_b!WITHDRAWN, bid, 0
	}
	od
}

/*
 * Connections that processes open, to a host that listens, or with -DPORT to the port of a process; with
 * -DFAR at another node. Both ends follow their rows. Written by hand are the events on their way between
 * the ends, the listener's queue, its one message, the node that is lost and comes back, and places that
 * are used again, after firmware/core/guest.c, listen.c and joint.c, and firmware/link/span.c.
 *
 * Bounds: CALLERS processes, which connect TIMES times each, QUEUE places before the listener. A process
 * closes, or ends, at any time, or waits for the target to close. Once, or never, the target ends, the
 * listener is stopped, or the other node is lost; then it comes back, or not.
 * Safety: an end that is said to be gone is gone; the listener offers no process that it knows to have
 * left; the queue has no more than its places; once nothing happens any more, no end, place, message or
 * event is left.
 * Progress: every call ends, by the target, the process, or a clock.
 */
#include "dial.pml"

#ifndef CALLERS
#define CALLERS 1 /* or 2 */
#endif
#ifndef TIMES
#define TIMES 1
#endif
#ifndef QUEUE
#define QUEUE 1
#endif
#ifdef FAR
#define FAR_KIND 2
#else
#define FAR_KIND 0
#endif
#ifdef PORT
#define HOST_KIND 0
#else
#define HOST_KIND 1
#endif
#define NOBODY 99

mtype = { asks, admits, opens, refuses, gone };

byte kind = HOST_KIND + FAR_KIND;
byte cs[2], ts[2]; /* the ends of each connection */
chan to_t[2] = [2] of { mtype, byte }; /* news on their way to the target … */
chan to_c[2] = [2] of { mtype, byte }; /* … and to the caller; of the connection of that number */
bool met[2]; /* both ends are at one node by now */
bool lost_c[2], lost_t[2]; /* the end is about to notice that the other node is lost */
bool asked[2]; /* the request has arrived */
bool away; /* no packet arrives at the other node */
bool stopped; /* nothing listens, or has the port, any more */
byte word = NOBODY; /* whose message of the listener is unanswered */
byte waiting; /* places in the queue */
byte done;
bool closes; /* the target closes what it has, and does not only wait for its callers */
bool known; /* what an assertion is about */
byte does, st, news;

#define APART(i) (kind & 2 && !met[i])
#define QUIET(i) (len(to_t[i]) == 0 && len(to_c[i]) == 0)
#define FREE(i) (cs[i] == L_none && ts[i] == L_none && QUIET(i) && !lost_c[i] && !lost_t[i])
#define LEFT (news == Q_none || away && APART(i))
#define NAMED (news == Q_asks -> asks : (news == Q_admits -> admits : (news == Q_opens -> opens : (news == Q_refuses -> refuses : gone))))

inline tell_t(i)
{
	if
	:: LEFT
	:: else -> to_t[i]!NAMED, i
	fi;
	news = 0; does = 0; st = 0
}

inline tell_c(i)
{
	waiting = (ts[0] == L_waiting -> 1 : 0) + (ts[1] == L_waiting -> 1 : 0);
	if
	:: LEFT
	:: else -> to_c[i]!NAMED, i
	fi;
	news = 0; does = 0; st = 0
}

/* ---- processes ---- */

proctype caller(byte i)
{
	byte n;

	do
	:: n < TIMES ->
		atomic { /* a place of its own, once no event of the connection before is on its way */
#ifdef EARLY
			cs[i] == L_none && ts[i] == L_none ->
#else
			FREE(i) ->
#endif
			n++; met[i] = false; asked[i] = false;
			dial_caller_connects(cs[i], kind, does, st, news);
			tell_t(i)
		};
		if
		:: cs[i] != L_asking /* channel_connect returned */
		:: atomic { kind & 2 && cs[i] == L_asking -> /* it is to stop */
			dial_caller_ends(cs[i], kind, does, st, news);
			tell_t(i)
		}
		fi;
		if
		:: cs[i] == L_none
		:: closes -> cs[i] == L_none /* a call that the target, or a clock, has to end */
		:: atomic { cs[i] != L_none -> dial_caller_closes(cs[i], kind, does, st, news); tell_t(i) }
		:: atomic { cs[i] != L_none -> dial_caller_ends(cs[i], kind, does, st, news); tell_t(i); break }
		fi
	:: n == TIMES -> break
	od;
	done++
}

/* What arrives at the caller's end. */
proctype caller_end(byte i)
{
	mtype e;

end:
	do
	:: atomic {
		to_c[i]?e, eval(i) ->
		if
		:: e == admits -> dial_caller_admitted(cs[i], kind, does, st, news)
		:: e == opens -> dial_caller_opened(cs[i], kind, does, st, news)
		:: e == refuses -> dial_caller_refused(cs[i], kind, does, st, news)
		:: e == gone ->
			known = ts[i] == L_none;
			assert(known); /* the target is gone that is said to be */
			dial_caller_other_gone(cs[i], kind, does, st, news)
		fi;
		assert(news == Q_none);
		e = 0; does = 0; st = 0; known = false
	}
#ifdef FAR
	:: atomic { cs[i] == L_asking -> /* a second is over */
		dial_caller_late(cs[i], kind, does, st, news);
		tell_t(i)
	}
	:: atomic { cs[i] == L_asking && !away && !asked[i] && QUIET(i) -> news = Q_asks; tell_t(i) } /* again */
	:: atomic { lost_c[i] && len(to_c[i]) == 0 -> lost_c[i] = false;
		if
		:: APART(i) ->
			lost_t[i] = ts[i] != L_none;
			printf("MSC: the process's node notices the loss\n");
			dial_caller_node_lost(cs[i], kind, does, st, news); tell_t(i)
		:: else
		fi
	}
#endif
	od
}

/* ---- the target ---- */

/* What arrives at the target's end. */
proctype target_end(byte i)
{
	mtype e;

end:
	do
	:: atomic {
		to_t[i]?e, eval(i) ->
		if
		:: e == asks -> asked[i] = true;
			if
#ifdef PORT
			:: !stopped && ts[1 - i] != L_open
#else
			:: !stopped && waiting < QUEUE
#endif
				-> dial_target_asked(ts[i], kind, does, st, news)
			:: else -> dial_target_asked_in_vain(ts[i], kind, does, st, news)
			fi
		:: e == gone ->
			known = cs[i] == L_none;
			assert(known); /* the process is gone that is said to be */
			dial_target_other_gone(ts[i], kind, does, st, news)
		fi;
		tell_c(i);
		assert(waiting <= QUEUE);
		e = 0; known = false
	}
#ifdef FAR
	:: atomic { lost_t[i] && len(to_t[i]) == 0 -> lost_t[i] = false;
		if
		:: APART(i) ->
			lost_c[i] = cs[i] != L_none;
			printf("MSC: the target's node notices the loss\n");
			dial_target_node_lost(ts[i], kind, does, st, news); tell_c(i)
		:: else
		fi
	}
	:: atomic { ts[i] == L_taken && APART(i) -> /* ten seconds are over */
		dial_target_late(ts[i], kind, does, st, news); tell_c(i) }
#endif
	od
}

/* The host opens what it took; at another node it finds the process that waits for it. */
inline open_it(i)
{
	atomic {
		ts[i] == L_taken_left || ts[i] == L_taken && (!APART(i) || cs[i] == L_waiting) ->
		printf("MSC: opens %d\n", i);
		dial_target_opens(ts[i], kind, does, st, news);
		if
		:: APART(i) -> met[i] = true; news = 0; dial_caller_opened(cs[i], kind, does, st, news)
		:: else
		fi;
		tell_c(i)
	}
}

/* What is on its way is lost, and both ends will notice. */
inline loses(i)
{
	lost_c[i] = APART(i) && (cs[i] == L_waiting || cs[i] == L_open);
	lost_t[i] = APART(i) && ts[i] != L_none;
	do
	:: APART(i) && len(to_t[i]) > 0 -> to_t[i]?_, _
	:: APART(i) && len(to_c[i]) > 0 -> to_c[i]?_, _
	:: else -> break
	od
}

active proctype target()
{
	byte i;

end:
	do
#ifdef PORT
	:: atomic { closes && ts[0] == L_open -> i = 0; dial_target_closes(ts[i], kind, does, st, news); tell_c(i); i = 0 }
	:: atomic { closes && ts[1] == L_open -> i = 1; dial_target_closes(ts[i], kind, does, st, news); tell_c(i); i = 0 }
#else
	/* the caller's node has the answer before the host is told */
	:: atomic { word == NOBODY && (ts[0] == L_waiting && (cs[0] != L_asking) || ts[1] == L_waiting && cs[1] != L_asking) ->
		if
		:: ts[0] == L_waiting && cs[0] != L_asking -> i = 0
		:: ts[1] == L_waiting && cs[1] != L_asking -> i = 1
		fi;
		word = i;
		known = cs[i] != L_none || !QUIET(i) || lost_t[i];
		assert(known); /* the process is there, or its end is on its way */
		known = false;
		printf("MSC: offers %d\n", i);
		dial_target_turn(ts[i], kind, does, st, news);
		tell_c(i); i = 0
	}
	:: atomic { word != NOBODY -> i = word; word = NOBODY; printf("MSC: takes %d\n", i); dial_target_takes(ts[i], kind, does, st, news); tell_c(i); i = 0 }
	:: open_it(0)
	:: open_it(1)
	:: atomic { closes && ts[0] == L_open || ts[0] == L_alone -> dial_target_closes(ts[0], kind, does, st, news); tell_c(0) }
	:: atomic { closes && ts[1] == L_open || ts[1] == L_alone -> dial_target_closes(ts[1], kind, does, st, news); tell_c(1) }
#endif
	od
}

/* One thing that goes wrong, or none. */
active proctype trouble()
{
	if
	:: true
	:: atomic { /* the process ends, or the host detaches */
		true -> stopped = true; word = NOBODY;
		printf("MSC: the target ends\n");
		dial_target_ends(ts[0], kind, does, st, news); tell_c(0);
		dial_target_ends(ts[1], kind, does, st, news); tell_c(1)
	}
#ifndef PORT
	:: atomic {
		true -> stopped = true; word = NOBODY;
		printf("MSC: the listener is stopped\n");
		dial_target_stops(ts[0], kind, does, st, news); tell_c(0);
		dial_target_stops(ts[1], kind, does, st, news); tell_c(1)
	}
#endif
#ifdef FAR
	:: atomic {
		true -> away = true;
		printf("MSC: the other node is lost\n");
		loses(0);
		loses(1)
	};
		if
		:: true -> away = false; printf("MSC: it comes back\n")
		:: true
		fi
#endif
	fi
}

init
{
	atomic {
		if :: closes = true :: closes = false fi;
		run caller(0); run caller_end(0); run target_end(0);
#if CALLERS > 1
		run caller(1); run caller_end(1); run target_end(1)
#endif
	};
	timeout; /* nothing happens any more */
	assert(done == CALLERS);
	assert(cs[0] == L_none && cs[1] == L_none);
	assert(ts[0] == L_none && ts[1] == L_none);
	assert(QUIET(0) && QUIET(1) && word == NOBODY && waiting == 0)
}

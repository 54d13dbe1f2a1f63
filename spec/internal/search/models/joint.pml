/*
 * Messages between two processes over a joint: one connects to the port of the other, on its own node, or
 * with -DFAR on another one. Each end has the device's rows. Written by hand are the rings of a joint, the
 * calls of islands, recalls, the end of a subscription, a joint that is used again, and with -DFAR the
 * spans at both nodes, after firmware/core/joint.c, half.c, note.c and manager.c, and firmware/link/span.c.
 * What a span repeats has arrived once, and in order, as the model of links has it.
 *
 * Bounds: K messages of each process in all, TIMES connections. A process closes any half, or ends, at any
 * time; one of them is to stop, or neither. With -DFAR the nodes lose each other once, or never, and find
 * each other again, or not.
 * Safety: the outcome of a message is the same at both ends, unless the nodes lose each other: then a
 * write that succeeded was read. Messages arrive in order. A ring has six unread slots at most. A slot of
 * one connection is not read in the next. Once all is over, the port is back at its mailbox.
 * Progress: every write ends, by a read, a close, a stop, or the loss of the node.
 */
#include "device.pml"

#ifndef K
#define K 1
#endif
#ifndef TIMES
#define TIMES 1
#endif
#ifdef FAR
#define JOINTS TIMES
#else
#define JOINTS 1
#endif
#define TOOK 1
#define BACK 2
#define MOST 6 /* unread slots of a ring */

mtype = { DIRECT, ACK, ERROR, WITHDRAW, WITHDRAWN, CLOSE };
mtype = { unused, asks, up, over };

/* Ends: 0 connected, 1 is the port. Halves: 2e takes, 2e+1 offers. Rings of joint j, to end e: 2j+e. */
byte s[4], id[4] = 1;
short m[4];
bool open[2], busy[2], recall[2], stop[2], ended[2], writes[2];
byte generation[2], asked[2], result[2], taken[2];
byte joined[2]; /* ids that the connection begins with, at the process that connected */
byte cur; /* joint of the process that connected */
byte at; /* the joint that the port is at, and 1; 0: its mailbox */
byte before[JOINTS]; /* where it was before */
bool freed[JOINTS]; /* the port has left the joint */
chan q[2 * JOINTS] = [MOST + 1] of { mtype, byte, byte }; /* type, half or halves, id or generation */
#ifdef FAR
mtype span[2 * JOINTS] = unused;
bool finished[2 * JOINTS];
bool away, apart; /* no packet arrives; the nodes lost each other */
#else
bool called[2];
#endif

#define AT(e) ((e) == 0 -> cur : at - 1)
#define TO(e) (2 * AT(e) + 1 - (e))
#define OWN(e) (2 * AT(e) + (e))

inline puts(e, t, half, n)
{
#ifdef FAR
	if
	:: span[OWN(e)] != over -> q[TO(e)]!t, half, n; assert(len(q[TO(e)]) <= MOST)
	:: else
	fi
#else
	q[TO(e)]!t, half, n;
	assert(len(q[TO(e)]) <= MOST);
	called[TO(e)] = true
#endif
}

/* The port is at its mailbox again, and the joint may be used once more. */
inline leaves(e)
{
	if
#ifdef STAYS
	:: e == 1 && at && !open[1] && !recall[1] -> x = at - 1;
#else
	:: e == 1 && at && !open[1] -> x = at - 1;
#endif
		at = before[x]; freed[x] = true
	:: else
	fi
}

inline releases(e)
{
	if
	:: ret == R_fails -> result[e] = BACK
	:: ret == R_succeeds -> result[e] = TOOK
	:: else
	fi
}

/* The other end closed these halves. */
inline shuts(e, halves)
{
	if :: (halves) & 1 -> dev_h2d_CLOSE(s[2 * e], m[2 * e], put, ret) :: else fi;
	if :: (halves) & 2 -> dev_d2h_CLOSE(s[2 * e + 1], m[2 * e + 1], put, ret); releases(e) :: else fi;
	if
	:: (m[2 * e] & N_shut) && (m[2 * e + 1] & N_shut) ->
		puts(e, CLOSE, 3, generation[e]);
		open[e] = false;
#ifdef FAR
		finished[OWN(e)] = true;
#endif
		leaves(e)
	:: else
	fi
}

/* A process closes halves that it has not closed. */
inline closes(e, halves)
{
	x = (((halves) & 1) && !(m[2 * e] & N_closed) -> 1 : 0);
	if :: ((halves) & 2) && !(m[2 * e + 1] & N_closed) -> x = x + 2 :: else fi;
	put = P_nothing;
	if :: x & 1 -> dev_h2d_channel_close(s[2 * e], m[2 * e], put, ret) :: else fi;
	if :: put == P_ERROR -> puts(e, ERROR, 0, id[2 * e] - 1) :: else fi;
	if :: x & 2 -> dev_d2h_channel_close(s[2 * e + 1], m[2 * e + 1], put, ret) :: else fi;
	if :: open[e] && x -> puts(e, CLOSE, x, generation[e]) :: else fi;
	x = 0
}

/* ---- islands ---- */

/* A slot, whose halves are those of the end that put it. */
inline dispatch(e)
{
	q[k]?t, half, n;
	if
	:: t == DIRECT ->
		assert(n == id[2 * e] && s[2 * e] == D_idle);
		dev_h2d_DIRECT(s[2 * e], m[2 * e], put, ret);
		id[2 * e]++;
		if :: put == P_ERROR -> puts(e, ERROR, 0, n) :: else fi
	:: t == WITHDRAW && n == id[2 * e] - 1 && s[2 * e] == D_message -> recall[e] = true; asked[e] = n
	:: t == ACK && n == id[2 * e + 1] - 1 && s[2 * e + 1] == D_message -> dev_d2h_ACK_CONSUMED(s[2 * e + 1], m[2 * e + 1], put, ret); releases(e)
	:: t == ERROR && n == id[2 * e + 1] - 1 && s[2 * e + 1] == D_message -> dev_d2h_ERROR(s[2 * e + 1], m[2 * e + 1], put, ret); releases(e)
	:: t == WITHDRAWN && n == id[2 * e + 1] - 1 && s[2 * e + 1] == D_message -> dev_d2h_WITHDRAWN(s[2 * e + 1], m[2 * e + 1], put, ret); releases(e)
	:: t == CLOSE ->
		assert(n == generation[e]);
		shuts(e, (half & 1) * 2 + half / 2)
	:: else
	fi;
	t = 0; half = 0; n = 0; put = 0; ret = 0
}

#define READS(e, j) (open[e] && AT(e) == (j))
#define OTHER(k) ((k) ^ 1)
#define ARRIVES(k) (!away && span[k] == up && span[OTHER(k)] == up && len(q[k]) > 0)

#ifdef FAR
/* A slot arrives, and is read, but for an end that is closed. */
inline arrives(e, joint)
{
	atomic {
		ARRIVES(2 * (joint) + e) ->
		k = 2 * (joint) + e;
		if
		:: READS(e, joint) -> dispatch(e)
		:: else -> q[k]?_, _, _
		fi;
		x = 0; k = 0
	}
}

/* GONE, or a second of silence. */
inline notices(e, joint)
{
	atomic {
#ifdef DEAF
		span[2 * (joint) + e] == up && (!away && span[OTHER(2 * (joint) + e)] == over) ->
#else
		span[2 * (joint) + e] == up && (away || span[OTHER(2 * (joint) + e)] == over) ->
#endif
		span[2 * (joint) + e] = over;
		if
		:: READS(e, joint) -> shuts(e, 3)
		:: else
		fi;
		put = 0; ret = 0; x = 0
	}
}

/* All that was put has arrived. */
inline finishes(k)
{
	atomic {
		span[k] == up && finished[k] && len(q[OTHER(k)]) == 0 -> span[k] = over
	}
}
#else
/* A call of the island: all that is there is read. */
inline reads(e)
{
	do
	:: READS(e, 0) && len(q[e]) > 0 -> k = e; dispatch(e)
	:: else -> break
	od;
	x = 0; k = 0
}
#endif

proctype island(byte e)
{
	mtype t;
	byte half, n, put, ret, k, x;

end:
	do
#ifdef FAR
	:: arrives(e, 0)
	:: notices(e, 0)
	:: finishes(e)
#if JOINTS > 1
	:: arrives(e, 1)
	:: notices(e, 1)
	:: finishes(2 + e)
#endif
#else
#ifdef LATE
	:: atomic { called[e] -> busy[e] = true; reads(e) };
		atomic { called[e] = false; busy[e] = false }
#else
	:: atomic { called[e] -> called[e] = false; reads(e) }
#endif
#endif
	:: atomic { recall[e] && !busy[e] -> /* the processes have run */
		recall[e] = false;
		if
		:: s[2 * e] == D_message && id[2 * e] - 1 == asked[e] ->
			dev_h2d_WITHDRAW(s[2 * e], m[2 * e], put, ret);
			if :: put == P_WITHDRAWN -> puts(e, WITHDRAWN, 0, asked[e]) :: else fi
		:: else
		fi;
		asked[e] = 0;
		leaves(e);
		put = 0; ret = 0; x = 0
	}
	od
}

/* ---- processes ---- */

/* The port is subscribed: ids and generation are those of an OPEN. */
inline subscribes(j)
{
	assert(s[2] == D_idle && s[3] == D_idle);
	assert(at == 0); /* the port is at its mailbox */
	m[2] = 0; m[3] = 0;
	generation[1]++;
	joined[0] = id[3]; joined[1] = id[2];
	before[j] = at; freed[j] = false; at = j + 1; open[1] = true
}

inline opens()
{
	s[0] = D_idle; s[1] = D_idle; m[0] = 0; m[1] = 0;
	id[0] = joined[0]; id[1] = joined[1];
	generation[0] = generation[1];
	open[0] = true
}

inline connects()
{
#ifdef FAR
	atomic { e == 0 && !busy[0] && !open[0] && n < TIMES -> cur = n; n++; span[2 * cur] = asks };
	if
	:: atomic { span[2 * cur] != asks && !busy[0] -> skip }
#ifdef SILENT
	:: atomic { span[2 * cur] == asks -> span[2 * cur] = unused }
#else
	:: atomic { span[2 * cur] == asks -> finished[2 * cur] = true; span[2 * cur] = over } /* no answer in a second */
#endif
	fi
#else
	atomic {
		e == 0 && !busy[0] && !open[0] && n < TIMES && !busy[1] && !open[1] && !ended[1] && (n == 0 || freed[0] && !called[0] && !called[1]) ->
		n++;
#ifndef KEEPS
		do :: len(q[0]) > 0 -> q[0]?_, _, _ :: len(q[1]) > 0 -> q[1]?_, _, _ :: else -> break od;
#endif
		subscribes(0);
		opens()
	}
#endif
}

proctype program(byte e)
{
	byte put, ret, x, n, wrote;
	bool back;

	do
	:: connects()
	:: atomic { /* channel_write */
		!busy[e] && open[e] && wrote < K && !stop[e] && !(m[2 * e + 1] & (N_shut | N_closed)) ->
		dev_d2h_channel_write(s[2 * e + 1], m[2 * e + 1], put, ret);
		assert(put == P_DIRECT);
		wrote++; result[e] = 0; writes[e] = true;
		id[2 * e + 1]++;
		puts(e, DIRECT, 1, id[2 * e + 1] - 1);
		put = 0; ret = 0
	};
		do
		:: atomic { result[e] && !busy[e] ->
#ifdef FAR
			assert((result[e] == TOOK) == (taken[e] == id[2 * e + 1] - 1) || apart && result[e] == BACK);
#else
			assert((result[e] == TOOK) == (taken[e] == id[2 * e + 1] - 1));
#endif
			assert(s[2 * e + 1] == D_idle);
			writes[e] = false; result[e] = 0; back = false;
			break
		}
		:: atomic { stop[e] && !back && !busy[e] && open[e] && may_dev_d2h_stop(s[2 * e + 1], m[2 * e + 1]) ->
			dev_d2h_stop(s[2 * e + 1], m[2 * e + 1], put, ret);
			assert(put == P_WITHDRAW);
			back = true;
			puts(e, WITHDRAW, 1, id[2 * e + 1] - 1);
			put = 0; ret = 0
		}
		od
	:: atomic { /* channel_read */
		!busy[e] && may_dev_h2d_take(s[2 * e], m[2 * e]) ->
		dev_h2d_take(s[2 * e], m[2 * e], put, ret);
		taken[1 - e] = id[2 * e] - 1;
		if :: put == P_ACK_CONSUMED -> puts(e, ACK, 0, id[2 * e] - 1) :: else fi;
		put = 0; ret = 0
	}
	:: atomic { !busy[e] && open[e] && !(m[2 * e] & N_closed) -> closes(e, 1); put = 0; ret = 0 }
	:: atomic { !busy[e] && open[e] && !(m[2 * e + 1] & N_closed) -> closes(e, 2); put = 0; ret = 0 }
	:: atomic { !busy[e] -> closes(e, 3); ended[e] = true; put = 0; ret = 0; break }
	od
}

/* ---- nodes ---- */

#ifdef FAR
/* JOIN, at the port's node. */
inline joins(j)
{
	atomic {
		!away && span[2 * j] == asks && span[2 * j + 1] == unused && !busy[1] ->
		if
		:: open[1] || ended[1] -> span[2 * j] = over; span[2 * j + 1] = over
		:: else -> subscribes(j); span[2 * j + 1] = up
		fi
	}
}

/* JOINED. */
inline answers(j)
{
	atomic { !away && span[2 * j] == asks && span[2 * j + 1] == up && !busy[0] -> opens(); span[2 * j] = up }
}

active proctype nodes()
{
end:
	do
	:: joins(0)
	:: answers(0)
#if JOINTS > 1
	:: joins(1)
	:: answers(1)
#endif
	od
}

active proctype loss()
{
	if
	:: true
	:: atomic { true -> away = true; apart = true; printf("MSC: the nodes lose each other\n") };
		if
		:: true
		:: away = false; printf("MSC: they find each other\n")
		fi
	fi
}
#endif

active proctype stopper()
{
	if
	:: true
	:: stop[0] = true
	:: stop[1] = true
	fi
}

init
{
	atomic { run program(0); run island(0); run program(1); run island(1) };
	timeout; /* nothing happens any more: each process has ended, or both write and neither reads */
	assert(ended[0] && ended[1] || writes[0] && writes[1] && s[0] == D_message && s[2] == D_message);
	atomic { stop[0] = true; stop[1] = true };
	timeout;
	assert(ended[0] && ended[1]);
	assert(!open[0] && !open[1] && !recall[0] && !recall[1]);
	assert(at == 0)
}

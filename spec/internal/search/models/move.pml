/*
 * An end of a channel that goes from host to host: the far host sends messages to whichever has it. The
 * channel at each host follows its rows. Written by hand are the mailboxes of the channel, the requests,
 * which overtake them, the other channel, and the hosts, after firmware/core/move.c and
 * bridge/mailbox/move.go.
 *
 * Bounds: N messages, of which the far host asks W back; MOVES sends of the end, there and back, each of
 * which may be given up, taken as bytes, or held until the other channel breaks. Once, or never, a host or
 * the far one detaches.
 * Safety: one host has the end, and one at most takes itself for that; each message is taken once, in
 * order; the far host learns whether it was; what the sender is told is true; nothing is left.
 * Progress: every call ends, by the other host, the device, or a clock.
 */
#include "move.pml"

#ifndef N
#define N 2
#endif
#ifndef W
#define W 1
#endif
#ifndef MOVES
#define MOVES 1 /* or 2 */
#endif

#define NOBODY 9

mtype = { offers, withdraws, took, back, gone, closes };

byte st[2], marks; /* the channel at each host; what goes along with the end */
chan up[2] = [2] of { mtype }; /* mailboxes of the channel at each host … */
chan down[2] = [4] of { mtype, byte }; /* … with the number of a message */
chan to_end = [2] of { mtype }; /* of the far host */
chan to_far = [2] of { mtype };

/* The other channel: whose message lies there, whether the other host looks at it, and how it went. */
byte from = NOBODY, sent; /* 0: not yet, 1: acknowledged, 2: refused, withdrawn, or broken */
bool looks, broken;

bool has[2]; /* the host takes itself for the one that has the end */
bool late[2]; /* the host has a ticket that it took as bytes */
bool over[2]; /* the device closed the channel there */
bool dead[2], far_dead;
byte lies[2]; /* the message that the host is offered */
byte number, taken; /* the message of the far host, and how many were taken */
bool gave[2]; /* the end was another host's since this one asked for its ticket */
byte tries, asked;
bool far_done; /* every send of the far host has returned */
byte reply, puts, news;
bool known; /* what an assertion is about */

#define OWNS(h) (st[h] == V_open || st[h] == V_ticketed || st[h] == V_bound || st[h] == V_bound_alone)
#define OWNER (OWNS(0) -> 0 : 1)

/* ---- the device ---- */

/* What follows from a row, at host h. */
inline follows(own)
{
	if :: puts & 1 -> down[own]!offers, number :: else fi;
	if :: puts & 8 -> down[own]!withdraws, 0 :: else fi;
	if :: puts & 64 -> down[own]!closes, 0 :: else fi;
	if
	:: news == 1 ->
		gave[own] = true;
		move_gets(st[1 - (own)], marks, reply, puts, news);
		reply = Y_0
	:: news == 3 -> if :: !far_dead -> to_far!took :: else fi
	:: news == 4 -> if :: !far_dead -> to_far!back :: else fi
	:: news == 5 -> if :: !far_dead -> to_far!gone :: else fi; marks = 0
	:: else
	fi;
	if
	:: !OWNS(0) && !OWNS(1) -> marks = 0
	:: else
	fi;
	known = OWNS(0) && OWNS(1);
	assert(!known); /* one host has the end */
	puts = 0; news = 0
}

/* A slot of a host's mailbox. */
inline reads(by, e)
{
	if
	:: e == took -> move_takes(st[by], marks, reply, puts, news)
	:: e == back -> move_gives_back(st[by], marks, reply, puts, news)
	:: e == closes -> move_closes(st[by], marks, reply, puts, news)
	fi;
	reply = 0; e = 0;
	follows(by)
}

/*
 * Requests of hosts, each of which the device serves at once: what the host put in the mailbox before may
 * be read later. TICKET reads it first.
 */
inline tickets(at)
{
#ifndef EARLY
	do
	:: up[at]?e -> reads(at, e)
	:: len(up[at]) == 0 -> break
	od;
#endif
	move_ticket(st[at], marks, reply, puts, news);
	printf("MSC: ticket of %d\n", at);
	follows(at); r = reply; reply = 0
}

inline claims(at)
{
	if
	:: broken -> reply = Y_never
	:: else -> move_claim(st[1 - at], marks, reply, puts, news); follows(1 - at)
	fi;
	printf("MSC: claim of %d\n", at);
	r = reply; reply = 0
}

inline voids(at)
{
	move_void(st[at], marks, reply, puts, news);
	printf("MSC: void of %d\n", at);
	r = reply; reply = 0
}

inline opens(at)
{
	move_opens(st[at], marks, reply, puts, news);
	printf("MSC: open of %d\n", at);
	follows(at); r = reply; reply = 0
}

inline far_event(to, e)
{
	if
	:: e == offers -> move_other_offers(st[to], marks, reply, puts, news)
	:: e == withdraws -> move_other_withdraws(st[to], marks, reply, puts, news)
	:: e == gone -> move_other_gone(st[to], marks, reply, puts, news)
	fi;
	follows(to)
}

proctype device()
{
	mtype e;

end:
	do
	:: atomic { up[0]?e -> reads(0, e) }
	:: atomic { up[1]?e -> reads(1, e) }
	:: atomic { to_end?e ->
		if
		:: !OWNS(0) && !OWNS(1)
		:: OWNS(0) -> far_event(0, e)
		:: OWNS(1) -> far_event(1, e)
		fi;
		e = 0; reply = 0
	}
	od
}

/* ---- hosts ---- */

/* What a host does without a call: it gives back what no call has taken. */
proctype manager(byte h)
{
	mtype e;
	byte n;

end:
	do
	:: atomic { !dead[h] && len(up[h]) < 2 && len(down[h]) > 0 -> down[h]?e, n;
		if
		:: e == offers -> lies[h] = n
		:: e == withdraws && lies[h] -> lies[h] = 0; up[h]!back
		:: e == withdraws && !lies[h]
		:: e == closes -> over[h] = true; lies[h] = 0
		fi;
		e = 0; n = 0
	}
	od
}

proctype caller(byte h)
{
	byte r;
	mtype e;

end:
	do
	/* a message */
	:: atomic { !dead[h] && has[h] && lies[h] && len(up[h]) < 2 ->
		r = lies[h];
		printf("MSC: takes %d\n", r);
		known = r == taken + 1;
		assert(known); /* each message is taken once, in order */
		taken++; lies[h] = 0; r = 0; known = false;
		up[h]!took
	}
	/* SendChannel */
	:: atomic { !dead[h] && has[h] && !over[h] && tries < MOVES && from == NOBODY && !broken -> tries++; has[h] = false; gave[h] = false };
		do
		:: atomic { !dead[h] -> tickets(h);
			if
			:: r == Y_0 -> from = h; sent = (broken -> 2 : 0); late[1 - h] = false; break
			:: r == Y_never -> has[h] = true; break
			:: r == Y_EBUSY
			fi
		}
		:: dead[h] -> goto left
		od;
		if
		:: atomic { from == h && sent == 0 && !looks -> sent = 2; printf("MSC: gives up\n") }
		:: atomic { from == h && sent == 0 && looks -> sent = 2; broken = true; printf("MSC: gives up, and the other channel breaks\n") }
		:: from != h || sent > 0
		:: dead[h] -> goto left
		fi;
		if
		:: from != h -> r = 0
		:: atomic { from == h && !dead[h] ->
#ifdef TRUST
			r = (sent == 1 -> Y_moved : Y_not_moved);
#else
			voids(h);
#endif
			from = NOBODY; sent = 0;
			known = (r == Y_moved) == gave[h];
			assert(known); /* what the sender is told is true */
			known = false;
			gave[h] = false;
			if
			:: r == Y_moved -> lies[h] = 0
			:: else -> has[h] = true; r = 0; assert(!has[1 - h])
			fi
		};
			if
			:: r == 0
			:: atomic { r == Y_moved && len(up[h]) < 2 -> r = 0; up[h]!closes };
				if
				:: atomic { st[h] == V_none && len(down[h]) == 0 && over[h] -> over[h] = false; lies[h] = 0 }
				:: dead[h] -> goto left
				fi
			:: dead[h] -> goto left
			fi
		:: dead[h] -> goto left
		fi
	/* ReceiveChannel, or a call that takes the message as bytes */
	:: atomic { !dead[h] && from == 1 - h && sent == 0 && !looks && st[h] == V_none && !broken -> looks = true };
		do
		:: atomic { !dead[h] -> claims(h);
			if
			:: r == Y_0 -> break
			:: r == Y_never -> break
			:: r == Y_EBUSY -> r = 0
			fi
		}
		:: atomic { !dead[h] -> late[h] = true; break } /* as bytes, which it may claim yet */
		:: dead[h] -> goto left
		od;
		if
		:: atomic { r == Y_0 && !dead[h] -> opens(h); has[h] = r == Y_0; assert(!has[1 - h]) }
		:: r != Y_0
		:: dead[h] -> goto left
		fi;
		atomic {
			looks = false; r = 0;
			if
			:: !broken && from == 1 - h && sent == 0 -> sent = 1; printf("MSC: acknowledges\n")
			:: else
			fi
		}
	:: atomic { late[h] && !dead[h] && !looks && st[h] == V_none -> late[h] = false; claims(h) };
		if
		:: atomic { r == Y_0 && !dead[h] -> opens(h); has[h] = r == Y_0; r = 0; assert(!has[1 - h]) }
		:: r != Y_0 -> r = 0
		:: dead[h] -> goto left
		fi
	:: dead[h] -> break
	od;
left:
	skip
}

/* ---- the far host ---- */

proctype far()
{
	mtype e;
	bool recalls;

	do
	:: number < N ->
		atomic { number++; to_end!offers };
again:
		if
		:: to_far?e
		:: atomic { asked < W && !recalls -> asked++; recalls = true; to_end!withdraws }; goto again
		:: far_dead -> break
		fi;
		atomic {
			recalls = false;
			if
			:: e == took -> known = taken == number; assert(known)
			:: e == back -> known = taken == number - 1; assert(known); e = 0; known = false; to_end!offers; goto again
			:: e == gone -> break
			fi;
			e = 0; known = false
		}
	:: number == N || far_dead -> break
	od;
	far_done = true
}

/* One host that goes, or none. */
inline goes(h)
{
	atomic {
		true -> dead[h] = true; broken = true; has[h] = false; late[h] = false;
		printf("MSC: host %d detaches\n", h);
		do
		:: up[h]?e ->
			if
			:: e == took -> reads(h, e)
			:: else
			fi
		:: len(up[h]) == 0 -> break
		od;
		e = 0;
		if :: sent == 0 && from != NOBODY -> sent = 2 :: else fi;
		do :: down[h]?_, _ :: len(down[h]) == 0 -> break od;
		move_ends(st[h], marks, reply, puts, news);
		follows(h);
		reply = 0
	}
}

proctype trouble()
{
	mtype e;

	if
	:: true
	:: goes(0)
	:: goes(1)
	:: atomic { true -> far_dead = true; printf("MSC: the far host detaches\n") };
		atomic { to_end!gone }
	fi
}

init
{
	atomic {
		st[0] = V_open; has[0] = true;
		run device(); run far(); run trouble();
		run manager(0); run manager(1); run caller(0); run caller(1)
	};
	timeout; /* nothing happens any more */
	known = OWNS(0) || OWNS(1);
	assert(far_done);
	if
	:: dead[0] || dead[1] || far_dead
	:: else -> assert(known && taken == N && has[0] + has[1] == 1 && has[OWNER] && st[OWNER] == V_open && marks == 0)
	fi;
	assert(!far_dead || !known);
	assert(!dead[0] || st[0] == V_none);
	assert(!dead[1] || st[1] == V_none)
}

/*
 * One way of a link between nodes (firmware/link): packets that are repeated until they arrived, sent
 * only when the other end has room, and the link that comes back.
 *
 * Bounds: PACKETS packets that each take one of DEPTH places, sequences modulo SEQUENCES, of which
 * half may be unacked; wires of WIRE words each way, which lose LOSSES words in all; RESTARTS restarts;
 * ASKS questions that were not needed.
 * Safety: no packet finds the FIFO full; packets arrive once and in order; only a restart drops some;
 * no credit reports what was never sent.
 * Progress: every packet is acked or dropped by a restart.
 */
#ifndef PACKETS
#define PACKETS 3
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef ASKS
#define ASKS 0
#endif
#define DEPTH 2
#define SEQUENCES 4
#define COUNTS 16 /* credits count modulo this */
#define WIRE 2
#ifdef INCREMENTS
#define INITIAL DEPTH
#else
#define INITIAL 0
#endif

mtype = { PACKET, CREDIT, NAK, ASK, ANSWER, ALIGN, ALIGN_OK };

chan there = [WIRE] of { mtype, byte, byte }; /* sequence and number of a packet; a question's or session's id */
chan back = [WIRE] of { mtype, byte, byte }; /* the expected sequence, and places that were emptied ever */

byte losses, restarts, asks;
byte session = 1;
bool up;
byte base, first, next, last, furthest; /* of the session: packets that are acked, sent, queued */
short emptied; /* as the sender knows */
bool asking;
byte ask, ask_end;

byte held;
bool pending, answer;

#define ROOM(c) (len(c) < WIRE)
#define ADMITS (base + last < PACKETS && last - emptied < DEPTH && last - first < SEQUENCES / 2)
/* Nothing is under way, and no end has anything to do but by its clock. */
#define QUIET (len(there) == 0 && len(back) == 0 && !pending && !answer && !held && base + first < PACKETS && \
	(!up || !ADMITS && next == last))

inline put(c, t, x, y)
{
	if
	:: c!t, x, y
	:: losses < LOSSES -> losses++; printf("MSC: a word is lost\n")
	fi
}

inline send_ask()
{
	ask = (ask + 1) % 4;
	asking = true;
	ask_end = next;
	put(there, ASK, ask, 0)
}

inline go_back()
{
	next = first;
	asking = false
}

/* Nothing of a session outlives it. Nothing is known to be free until the first credit. */
inline forget()
{
	base = base + last;
	first = 0; next = 0; last = 0; furthest = 0;
	emptied = -DEPTH;
	asking = false
}

inline credit()
{
	byte packets, more;

	packets = (x + SEQUENCES - first % SEQUENCES) % SEQUENCES;
	assert(packets <= furthest - first);
#ifdef INCREMENTS
	more = y;
#else
	more = (y + COUNTS - ((emptied + COUNTS) % COUNTS)) % COUNTS;
	assert(more <= last - emptied);
#endif
#ifdef DOUBLE
	emptied = emptied + (emptied < 0 -> 0 : more);
#endif
	emptied = emptied + more;
	first = first + packets;
	if
	:: next < first -> next = first
	:: else
	fi;
	packets = 0; more = 0
}

active proctype sender()
{
	mtype t;
	byte x, y;

	forget();
	do
	:: atomic {
		up && ADMITS -> last++;
progress_queued:
		skip
	}
	:: atomic {
		up && next < last && ROOM(there) -> put(there, PACKET, next % SEQUENCES, base + next);
		next++;
		if
		:: furthest < next -> furthest = next
		:: else
		fi
	}
	:: atomic { up && first < next && asks < ASKS && ROOM(there) -> asks++; send_ask() }
	:: atomic { restarts < RESTARTS && ROOM(there) ->
		restarts++; session++; up = false; printf("MSC: restarts\n");
#ifdef KEEPS_UNACKED
		base = base - (last - first); /* the packets that are not acked are sent in the new session */
#endif
		forget()
	}
	:: atomic {
		back?t, x, y ->
		if
		:: t == ALIGN_OK -> up = up || x == session
		:: t == CREDIT && up -> credit()
		:: t == NAK && up -> credit(); go_back()
		:: t == ANSWER && up && asking && x == ask ->
			asking = false;
			if
			:: ask_end > first -> next = first
			:: else
			fi
		:: else
		fi;
		x = 0; y = 0
	}
	:: base + first == PACKETS -> break
	od;
end_sender:
	do
	:: back?t, x, y
	od
}

active proctype receiver()
{
	mtype t;
	byte x, y, seen, expected, total, arrived, waits;
	bool fresh, nak, asked;

end_receiver:
	do
	:: atomic {
		ROOM(back) && len(there) > 0 -> there?t, x, y;
		if
		:: t == ALIGN ->
			if
			:: x != seen ->
				seen = x; held = 0; total = INITIAL; asked = false; nak = false; answer = false; fresh = true;
#ifndef KEEPS_EXPECTED
				expected = 0
#endif
			:: else
			fi;
			pending = true;
			put(back, ALIGN_OK, x, 0)
		:: t == ASK && seen -> pending = true; answer = true; waits = x
		:: t == PACKET && seen ->
			if
#ifdef ANY_SEQUENCE
			:: (x + SEQUENCES - expected) % SEQUENCES <= SEQUENCES / 2 ->
#else
			:: x == expected ->
#endif
				assert(held < DEPTH); /* it has been given room */
				assert(y == arrived || fresh && y > arrived);
				arrived = y + 1; fresh = false;
				held++; expected = (expected + 1) % SEQUENCES; asked = false; pending = true
#ifndef ANY_SEQUENCE
			:: x != expected && (x + SEQUENCES - expected) % SEQUENCES <= SEQUENCES / 2 ->
				nak = nak || !asked; pending = pending || nak; asked = true
#endif
			:: else -> pending = true /* a repetition: ack it again */
			fi
		:: else
		fi;
		x = 0; y = 0
	}
	:: atomic { held > 0 -> held--; total = (total + 1) % COUNTS; pending = true }
	:: atomic {
		pending && ROOM(back) ->
		pending = false;
		if
		:: nak -> nak = false; put(back, NAK, expected, total)
		:: else -> put(back, CREDIT, expected, total)
		fi;
#ifdef INCREMENTS
		total = 0
#endif
	}
	:: atomic { answer && !pending && ROOM(back) -> answer = false; put(back, ANSWER, waits, 0) }
	od
}

/* What the ends do when nothing has happened for long enough. */
active proctype clock()
{
end_clock:
	do
	:: atomic { QUIET && !up -> put(there, ALIGN, session, 0) }
#ifndef NO_ASK
	:: atomic { QUIET && up && first < next -> send_ask() }
#endif
	:: atomic { QUIET && up && first == next -> pending = true } /* a beat has a credit */
	od
}

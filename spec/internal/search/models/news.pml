/*
 * The word by which a host reports where it put, and an island that looks nowhere else but in the one
 * mailbox that it watches.
 *
 * Bounds: two mailboxes, each with a thread of the host that puts MESSAGES messages; the island changes
 * what it watches at most SWITCHES times, at any time. The host's stores of slots are buffered, as in
 * the model of doorbells; all else is an exchange, which is a full fence.
 * Progress: the island takes every message: it is never asleep for good with one in a ring.
 *
 * The words and fences are those of "news" and "island park" in docs/protocol.md.
 */
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef SWITCHES
#define SWITCHES 1
#endif

byte published[2], taken[2];
byte value[2]; /* a thread's store of published, in its buffer */
bool stored[2];
byte news; /* a bit for each mailbox */
byte watched; /* 1 + a mailbox */
bool asleep, bell;

#define PENDING(i) (taken[i] < published[i])
#define WORK (news || watched && PENDING(watched - 1))

/* Store buffers drain whenever they like. */
active proctype memory()
{
end_memory:
	do
	:: atomic { stored[0] -> printf("MSC: slot 0 is seen\n"); published[0] = value[0]; stored[0] = false }
	:: atomic { stored[1] -> printf("MSC: slot 1 is seen\n"); published[1] = value[1]; stored[1] = false }
	od
}

inline report()
{
	atomic { quiet = watched == me + 1; printf("MSC: finds watched %d\n", watched) };
	if
	:: quiet -> skip
	:: else ->
		atomic { quiet = news & (1 << me); printf("MSC: finds news %d\n", news) };
		if
		:: quiet -> skip
		:: else ->
#ifndef BIT_FIRST
			!stored[me];
#endif
			atomic { news = news | (1 << me); printf("MSC: reports\n") }
		fi
	fi
}

proctype putter(byte me)
{
	byte n;
	bool quiet;

	do
	:: n < MESSAGES ->
		n++;
#ifdef BIT_FIRST
		report();
#endif
		atomic { !stored[me] -> value[me] = n; stored[me] = true; printf("MSC: stores slot %d\n", n) };
#ifndef NO_PUTTER_FENCE
		!stored[me];
#endif
#ifndef BIT_FIRST
		report();
#endif
		if
		:: atomic { asleep -> printf("MSC: rings\n"); asleep = false; bell = true }
		:: else
		fi;
progress_put:
		skip
	:: else -> break
	od
}

inline look(i)
{
	if
	:: atomic { (got & (1 << i) || watched == i + 1) && PENDING(i) -> taken[i]++; printf("MSC: takes slot %d of %d\n", taken[i], i) };
#ifndef NO_GIVING_BACK
		if
		:: atomic { PENDING(i) -> news = news | (1 << i) }
		:: else
		fi
#endif
	:: else
	fi
}

proctype island()
{
	byte got, before, switches;

	do
	:: taken[0] == MESSAGES && taken[1] == MESSAGES -> break
	:: WORK ->
		atomic { got = news; news = 0; printf("MSC: takes news %d\n", got) };
		look(0);
		look(1)
	:: switches < SWITCHES ->
		atomic { switches++; before = watched };
#ifdef LOOKS_TOO_SOON
		if
		:: before -> news = news | (1 << (before - 1))
		:: else
		fi;
		if
		:: WORK -> atomic { got = news; news = 0 }; look(0); look(1)
		:: else
		fi;
#endif
		atomic { watched = (before == 1 -> 2 : 1); printf("MSC: watches %d\n", watched - 1) };
#if !defined(NO_SECOND_LOOK) && !defined(LOOKS_TOO_SOON)
		if
		:: before -> atomic { news = news | (1 << (before - 1)); printf("MSC: has to look at %d\n", before - 1) }
		:: else
		fi
#endif
	:: !WORK && (taken[0] < MESSAGES || taken[1] < MESSAGES) ->
		atomic { asleep = true; printf("MSC: stores asleep 1\n") };
		if
		:: WORK -> skip
		:: else ->
			printf("MSC: sleeps\n");
			atomic { bell -> bell = false }
		fi;
		asleep = false
	od
}

init
{
	atomic { run putter(0); run putter(1); run island() }
}

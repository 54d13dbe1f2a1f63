/*
 * The handshakes by which one side sleeps and the other wakes it: an island and the host that puts a
 * message to it, or a host's call and the device.
 *
 * Bounds: MESSAGES messages. Each side has a store buffer, as x86 has and weaker processors
 * have, too: a store is seen by the other side when the buffer drains, at any time, or at
 * a full fence.
 * Progress: the sleeper takes every message: it is never asleep for good with a message in its ring.
 *
 * The words and fences are those of "island park" and "channel park" in docs/protocol.md; a device
 * that finds a park word rings each time, a host clears the island's word first (CLEARS).
 */
#ifndef MESSAGES
#define MESSAGES 2
#endif

byte published, asleep; /* as memory has them */
byte ring_buffer, ring_value; /* the putting side's store of published */
bool sleep_stored;
byte sleep_value; /* the sleeper's store of asleep */
bool bell; /* rung, and not heard yet */
byte taken;

#define SEEN_BY_PUTTER (ring_buffer -> ring_value : published)
#define SEEN_BY_SLEEPER (sleep_stored -> sleep_value : asleep)

/* Store buffers drain whenever they like. */
active proctype memory()
{
end_memory:
	do
	:: atomic { ring_buffer -> printf("MSC: the slot is seen\n"); published = ring_value; ring_buffer = 0 }
	:: atomic { sleep_stored -> printf("MSC: the word is seen\n"); asleep = sleep_value; sleep_stored = false }
	od
}

active proctype putter()
{
	byte n, word;

	do
	:: n < MESSAGES ->
		n++;
		atomic { !ring_buffer -> ring_value = n; ring_buffer = 1; printf("MSC: stores slot %d\n", n) };
#ifndef NO_PUTTER_FENCE
		!ring_buffer;
#endif
		atomic { word = asleep; printf("MSC: finds asleep %d\n", word) };
		if
		:: word ->
#ifdef CLEARS
			atomic { printf("MSC: rings\n"); asleep = 0; bell = true }
#else
			atomic { printf("MSC: rings\n"); bell = true }
#endif
		:: else
		fi;
progress_put:
		skip
	:: else -> break
	od
}

active proctype sleeper()
{
	do
	:: taken == MESSAGES -> break
	:: atomic { taken < published -> taken++; printf("MSC: takes slot %d\n", taken) }
	:: taken == published && taken < MESSAGES ->
		atomic { !sleep_stored -> sleep_value = 1; sleep_stored = true; printf("MSC: stores asleep 1\n") };
#ifndef NO_SLEEPER_FENCE
		!sleep_stored;
#endif
#ifndef NO_SECOND_LOOK
		if
		:: taken < published -> skip
		:: else ->
			printf("MSC: sleeps\n");
			atomic { bell -> bell = false }
		fi;
#else
		printf("MSC: sleeps\n");
		atomic { bell -> bell = false };
#endif
		atomic { !sleep_stored -> sleep_value = 0; sleep_stored = true };
		!sleep_stored
	od
}

// SPDX-License-Identifier: MIT
/*
 * The processes of Hoare's "Communicating Sequential Processes" (1978), as device
 * programs. Each stands beside its text in the paper; processes.go has the same for
 * the host. Ports are in the order of the parameters there.
 */
#include "nfc_fw.h"

/* west?x: true while there is one. east!x: true once it is taken. */
#define GET(port, x)                                                  \
	(channel_read(nfc_channel_of(self, port), &(x), sizeof(x)) == \
	 (int)sizeof(x))
#define PUT(port, x) \
	(!channel_write(nfc_channel_of(self, port), &(x), sizeof(x)))

enum { CARD = 80, LINE = 125, SEATS = 5 };

/* COPY:: *[c: character; west?c -> east!c] */
static void copy(struct nfc_process *self)
{
	char c;

	while (GET(0, c) && PUT(1, c))
		;
}

/*
 * SQUASH:: *[c: character; west?c ->
 *	[c != asterisk -> east!c
 *	|c = asterisk -> west?c;
 *		[c != asterisk -> east!asterisk; east!c
 *		|c = asterisk -> east!upward arrow]]]
 * An asterisk at the end stands for itself.
 */
static void squash(struct nfc_process *self)
{
	char c, asterisk = '*', arrow = '^';

	while (GET(0, c)) {
		if (c != asterisk) {
			PUT(1, c);
			continue;
		}
		if (!GET(0, c)) { /* reported once: a read more would wait */
			PUT(1, asterisk);
			return;
		}
		if (c == asterisk)
			PUT(1, arrow);
		else
			PUT(1, asterisk), PUT(1, c);
	}
}

/*
 * DISASSEMBLE:: *[cardimage: (1..80)character; cardfile?cardimage ->
 *	i: integer; i := 1; *[i <= 80 -> X!cardimage(i); i := i + 1]; X!space]
 */
static void disassemble(struct nfc_process *self)
{
	uint64_t at = nfc_alloc(self, NFC_CTM, CARD);
	char *card = nfc_at(self, at, CARD), space = ' ';

	while (at && !channel_read_ind(nfc_channel_of(self, 0), at, CARD)) {
		for (int i = 0; i < CARD; i++)
			PUT(1, card[i]);
		PUT(1, space);
	}
}

/*
 * ASSEMBLE:: lineimage: (1..125)character; i: integer; i := 1;
 *	*[c: character; X?c -> lineimage(i) := c;
 *		[i <= 124 -> i := i + 1 |i = 125 -> lineprinter!lineimage; i := 1]];
 *	[i = 1 -> skip
 *	|i > 1 -> *[i <= 125 -> lineimage(i) := space; i := i + 1]; lineprinter!lineimage]
 */
static void assemble(struct nfc_process *self)
{
	uint64_t at = nfc_alloc(self, NFC_CTM, LINE);
	char *line = nfc_at(self, at, LINE), c;
	int i = 0;

	while (at && GET(0, c)) {
		line[i++] = c;
		if (i < LINE)
			continue;
		channel_write_ind(nfc_channel_of(self, 1), at, LINE);
		i = 0;
	}
	if (!i)
		return;
	while (i < LINE)
		line[i++] = ' ';
	channel_write_ind(nfc_channel_of(self, 1), at, LINE);
}

/*
 * SIEVE(i):: p, mp: integer; SIEVE(i - 1)?p; print!p; mp := p;
 *	*[m: integer; SIEVE(i - 1)?m ->
 *		*[m > mp -> mp := mp + p];
 *		[m = mp -> skip |m < mp -> SIEVE(i + 1)!m]]
 */
static void sieve(struct nfc_process *self)
{
	uint64_t p, mp, m;

	if (!GET(0, p))
		return;
	PUT(2, p);
	mp = p;
	while (GET(0, m)) {
		while (m > mp)
			mp += p;
		if (m < mp)
			PUT(1, m);
	}
}

/*
 * M(i, j):: *[x: real; M(i, j - 1)?x -> M(i, j + 1)!x;
 *	sum: real; M(i - 1, j)?sum; M(i + 1, j)!(A(i, j)*x + sum)]
 * Integers, as a card has no others. Ports: west, east, north, south.
 */
static void multiply(struct nfc_process *self)
{
	int64_t x, sum, a = (int64_t)nfc_argument(self);

	while (GET(0, x) && PUT(1, x) && GET(2, sum)) {
		sum += a * x;
		PUT(3, sum);
	}
}

/*
 * PHIL(i) = *[THINK; room!enter( ); fork(i)!pickup( ); fork((i + 1) mod 5)!pickup( );
 *	EAT; fork(i)!putdown( ); fork((i + 1) mod 5)!putdown( ); room!exit( )]
 * Its argument is how often. Ports: room, left fork, right fork, table.
 */
static void philosopher(struct nfc_process *self)
{
	static const char signal[] = { 0, 1, 2, 3, 3, 1, 2, 0 };
	char at = 0;

	for (uint64_t n = nfc_argument(self); n; n--)
		for (uint32_t i = 0; i < sizeof(signal); i++)
			if (!PUT((uint32_t)signal[i], at))
				return;
}

/*
 * FORK(i) = *[phil(i)?pickup( ) -> phil(i)?putdown( )
 *	|phil((i - 1) mod 5)?pickup( ) -> phil((i - 1) mod 5)?putdown( )]
 */
static void fork_(struct nfc_process *self)
{
	struct nfc_channel *phil[2] = { nfc_channel_of(self, 0),
					nfc_channel_of(self, 1) };
	int n = 2, i;
	char c;

	while (n && (i = channel_alt(phil, (size_t)n, UINT64_MAX)) >= 0)
		if (channel_read(phil[i], &c, 1) < 0)
			phil[i] = phil[--n]; /* that one has left */
		else
			channel_read(phil[i], &c, 1);
}

/*
 * ROOM = occupancy: integer; occupancy := 0;
 *	*[(i: 0..4)phil(i)?enter( ) -> occupancy := occupancy + 1
 *	|(i: 0..4)phil(i)?exit( ) -> occupancy := occupancy - 1]
 * with the guard of the exercise, occupancy < 4, against deadlock.
 */
static void room(struct nfc_process *self)
{
	int inside[SEATS] = { 0 }, left[SEATS] = { 0 }, occupancy = 0;

	for (;;) {
		struct nfc_channel *phil[SEATS];
		int who[SEATS], n = 0, i;
		char c;

		for (i = 0; i < SEATS; i++)
			if (!left[i] && (inside[i] || occupancy < SEATS - 1)) {
				who[n] = i;
				phil[n++] = nfc_channel_of(self, (uint32_t)i);
			}
		if (!n || (i = channel_alt(phil, (size_t)n, UINT64_MAX)) < 0)
			return;
		if (channel_read(phil[i], &c, 1) < 0) {
			left[who[i]] = 1;
			continue;
		}
		inside[who[i]] ^= 1;
		occupancy += inside[who[i]] ? 1 : -1;
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "copy", copy },
	     { NFC_PROGRAM_ABI, 0, "squash", squash },
	     { NFC_PROGRAM_ABI, 0, "disassemble", disassemble },
	     { NFC_PROGRAM_ABI, 0, "assemble", assemble },
	     { NFC_PROGRAM_ABI, 0, "sieve", sieve },
	     { NFC_PROGRAM_ABI, 0, "multiply", multiply },
	     { NFC_PROGRAM_ABI, 0, "philosopher", philosopher },
	     { NFC_PROGRAM_ABI, 0, "fork", fork_ },
	     { NFC_PROGRAM_ABI, 0, "room", room });

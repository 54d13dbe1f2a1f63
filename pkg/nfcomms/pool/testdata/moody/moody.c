// SPDX-License-Identifier: MIT
/*
 * moody: returns every input, and obeys its first byte besides:
 *	c crashes, r returns, h is silent until it is stopped, each before the answer;
 *	d is deaf after the answer; t answers twice; b answers with two MiB;
 *	w waits for an o, which another process gets.
 * With the argument 1 it answers messages by replies.
 */
#include "nfc_fw.h"

enum { MOST = 2 << 20, NAP = 100 * 1000 };

static uint32_t opened; /* how many o arrived, over all processes */
static uint32_t waited;

/* Returns the length of the next input, which is at text; a transfer is at address, too. */
static int take(struct nfc_process *self, struct nfc_channel *ch, char *text,
		uint64_t address, uint64_t *moved)
{
	struct nfc_offer offer;
	int n = nfc_argument(self) ?
			channel_question(ch, text, NFC_PAYLOAD_SIZE, 0, 0,
					 &offer) :
			channel_read_any(ch, text, NFC_PAYLOAD_SIZE, &offer);

	*moved = 0;
	if (n == -NFC_ETOOLARGE && offer.indirect)
		n = 0;
	if (n || !offer.indirect)
		return n;
	n = channel_read_ind(
		ch, offer.size && offer.size <= MOST ? address : UINT64_MAX,
		offer.size);
	if (n)
		return n;
	*moved = offer.size;
	return (int)offer.size;
}

static void wait_until_stopped(struct nfc_process *self)
{
	while (!nfc_stopped(self))
		nfc_sleep(self, NAP);
}

static int answer(struct nfc_process *self, struct nfc_channel *ch,
		  const char *text, int n, uint64_t address, uint64_t moved)
{
	if (moved)
		return channel_write_ind(ch, address, moved);
	if (nfc_argument(self))
		return channel_reply(ch, text, (size_t)n);
	return channel_write(ch, text, (size_t)n);
}

/* Returns false where the process should end without an answer. */
static int obey(struct nfc_process *self, char mood)
{
	uint32_t mine;

	switch (mood) {
	case 'c':
		*(volatile int *)8 = 1;
		return 0;
	case 'r':
		return 0;
	case 'h':
		wait_until_stopped(self);
		return 0;
	case 'o':
		__atomic_fetch_add(&opened, 1, __ATOMIC_SEQ_CST);
		return 1;
	case 'w':
		mine = __atomic_fetch_add(&waited, 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&opened, __ATOMIC_SEQ_CST) <= mine &&
		       !nfc_stopped(self))
			nfc_sleep(self, NAP);
		return 1;
	default:
		return 1;
	}
}

static void moody_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint64_t address = nfc_alloc(self, NFC_EMEM, MOST), moved;
	char text[NFC_PAYLOAD_SIZE], mood;
	int n = address ? 0 : -NFC_ESTOPPED;

	while (n != -NFC_ESTOPPED) {
		n = take(self, ch, text, address, &moved);
		if (n < 0)
			continue;
		mood = n == 0 ? 0 :
		       moved  ? *(char *)nfc_at(self, address, 1) :
				text[0];
		if (!obey(self, mood))
			return;
		if (mood == 'b')
			moved = MOST;
		n = answer(self, ch, text, n, address, moved);
		if (mood == 't' && !n)
			n = answer(self, ch, text, (int)moved, address, moved);
		if (mood == 'd')
			wait_until_stopped(self);
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "moody", moody_main });

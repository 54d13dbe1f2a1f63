// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's core as a party to conversations: it reads lines with actions of
 * the host and slots of the device, and answers with the effects. Package
 * internal/proto/talk describes this for its Program.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfcm_core.h"

enum {
	CHANNEL = 5,
	EPOCH = 1,
	LINE = 256,
};

static const char *const states[] = { "idle",	"offered",  "answering",
				      "moving", "complete", "given",
				      "posted", "called" };
static const char *const events[] = {
	"none",
	"stale",
	"fault",
	"delivered",
	"refused",
	"withdrawn",
	"ready",
	"offer",
	"recalled",
	"progress",
	"retries-exhausted",
	"done",
	"failed",
	"aborted",
	"closed",
	"over",
	"asked",
	"answered",
	"unanswered",
};

static struct nfcm_layout layout;
static struct nfcm_channel_core channel;
static u32 closes_put; /* halves, 1 << enum nfc_direction */

static bool open_channel(const char *words)
{
	unsigned long long h2d, d2h, generation, window, limit;

	/* The last word, whether entries are runs, does not change how transfers end. */
	if (sscanf(words, "%llu %llu %llu %llu %llu", &h2d, &d2h, &generation,
		   &window, &limit) != 5)
		return false;
	layout = (struct nfcm_layout){ .epoch = EPOCH,
				       .channels = 64,
				       .mailboxes = 2,
				       .islands = 1,
				       .slots = 64,
				       .window = (u32)window,
				       .max_transfer = limit };
	nfcm_core_open(&channel, h2d, d2h, generation);
	closes_put = 0;
	return true;
}

static bool parse_slot(char *words, struct nfc_slot *slot)
{
	for (int i = 0; i < 8; i++) {
		char *end;
		u64 value = strtoull(words, &end, 16);

		if (end == words)
			return false;
		if (i)
			slot->payload[i - 1] = value;
		else
			slot->header = value;
		words = end;
	}
	return true;
}

/* A transfer of so many bytes begins. */
static bool begin(struct nfcm_half_core *h, u64 size)
{
	return nfcm_core_transfer(h, size, layout.window);
}

static bool put_list(struct nfcm_half_core *h, const struct nfc_slot *slot)
{
	struct nfc_gather g;
	u64 k;

	memcpy(&g, slot->payload, sizeof(g));
	if (h->direction == NFC_D2H && h->state == NFCM_STATE_OFFERED &&
	    !(nfcm_core_offers_transfer(h) && begin(h, nfcm_core_offer_size(h))))
		return false;
	if (h->state != NFCM_STATE_MOVING || !nfcm_ledger_next(&h->ledger, &k) ||
	    (g.tail & 0xffff) != (k & 0xffff))
		return false;
	nfcm_ledger_sent(&h->ledger, nfcm_list_end(h->ledger.size, &g));
	return true;
}

static bool put_close(const struct nfc_slot *slot)
{
	struct nfc_close c;

	memcpy(&c, slot->payload, sizeof(c));
	for (u32 d = NFC_H2D; d <= NFC_D2H; d++)
		if (c.halves >> d & 1) {
			if (!nfcm_act(&channel.half[d], NFCM_PUT_CLOSE))
				return false;
			closes_put |= 1u << d;
		}
	channel.last = closes_put == (1u << NFC_H2D | 1u << NFC_D2H);
	return true;
}

/* The half that a slot of the host is about. */
static struct nfcm_half_core *half_of(const struct nfc_slot *slot)
{
	struct nfc_note note;

	memcpy(&note, slot->payload, sizeof(note));
	switch (nfc_header_type(slot->header)) {
	case NFC_TYPE_DIRECT:
	case NFC_TYPE_CALL:
	case NFC_TYPE_IND_BEGIN:
	case NFC_TYPE_OFFER:
	case NFC_TYPE_CLOSE:
		return &channel.half[NFC_H2D];
	case NFC_TYPE_ACK:
	case NFC_TYPE_ERROR:
		return &channel.half[NFC_D2H];
	case NFC_TYPE_EAGER:
	case NFC_TYPE_IND_LIST:
		return &channel.half[!!(nfc_header_length(slot->header) &
					NFC_LIST_D2H)];
	default:
		return &channel.half[note.direction & 1];
	}
}

static bool put(struct nfcm_half_core *h, const struct nfc_slot *slot)
{
	struct nfc_begin b;

	memcpy(&b, slot->payload, sizeof(b));
	switch (nfc_header_type(slot->header)) {
	case NFC_TYPE_DIRECT:
		return nfcm_act(h, NFCM_PUT_MESSAGE);
	case NFC_TYPE_CALL:
		return nfcm_act(h, NFCM_PUT_CALL);
	case NFC_TYPE_IND_BEGIN:
		return begin(h, b.size);
	case NFC_TYPE_IND_LIST:
		return put_list(h, slot);
	case NFC_TYPE_EAGER:
		return nfcm_core_eager(h, b.size);
	case NFC_TYPE_ACK:
		return nfcm_act(h, NFCM_PUT_ACCEPT);
	case NFC_TYPE_ERROR:
		return nfcm_act(h, NFCM_PUT_REFUSE);
	case NFC_TYPE_CLOSE:
		return put_close(slot);
	case NFC_TYPE_OFFER:
		return h->state == NFCM_STATE_IDLE;
	case NFC_TYPE_READY:
		return h->state == NFCM_STATE_IDLE ||
		       h->state == NFCM_STATE_POSTED;
	case NFC_TYPE_WITHDRAW:
		return nfcm_act(h, NFCM_PUT_WITHDRAW);
	case NFC_TYPE_WITHDRAWN:
		return nfcm_act(h, NFCM_PUT_WITHDRAWN);
	case NFC_TYPE_ABORT:
		return nfcm_act(h, NFCM_PUT_ABORT);
	case NFC_TYPE_FIN:
		return nfcm_act(h, h->state == NFCM_STATE_OFFERED &&
						   !nfcm_core_offer_size(h) ?
					   NFCM_PUT_ACCEPT :
					   NFCM_PUT_FIN);
	default:
		return false;
	}
}

/* Handle a slot from the device; the mailbox is that of the channel. */
static void take(const struct nfc_slot *slot)
{
	struct nfcm_outcome out;
	u32 mailbox = nfcm_layout_mailbox(&layout, CHANNEL);

	nfcm_classify_header(&layout, mailbox, slot, &out);
	if (!out.event && nfc_header_channel(slot->header) != CHANNEL)
		nfcm_classify_stranger(slot, &out);
	else if (!out.event)
		nfcm_classify(&channel, &layout, slot, &out);
	printf("%s %s\n", events[out.event],
	       states[channel.half[out.direction].state]);
}

/* hold, release, shut */
static bool act(const char *what, const char *half)
{
	enum nfcm_input in = !strcmp(what, "hold")    ? NFCM_HOLD :
			     !strcmp(what, "release") ? NFCM_RELEASE :
							NFCM_SHUT;
	struct nfcm_half_core *h = &channel.half[!strncmp(half, "d2h", 3)];

	if (nfcm_act(h, in))
		printf("%s\n", states[h->state]);
	else
		printf("no %s while %s\n", what, states[h->state]);
	return true;
}

static bool answer(char *line)
{
	struct nfcm_half_core *h;
	char what[16] = "";
	struct nfc_slot slot;
	int n = 0;

	sscanf(line, "%15s %n", what, &n);
	if (!strcmp(what, "open")) {
		if (open_channel(line + n))
			return puts("ok") >= 0;
	} else if (!strcmp(what, "put")) {
		if (!parse_slot(line + n, &slot))
			return false;
		h = half_of(&slot);
		if (put(h, &slot))
			printf("%s\n", states[h->state]);
		else
			printf("no type %d while %s\n",
			       (int)nfc_header_type(slot.header),
			       states[h->state]);
		return true;
	} else if (!strcmp(what, "take")) {
		if (!parse_slot(line + n, &slot))
			return false;
		take(&slot);
		return true;
	} else if (!strcmp(what, "hold") || !strcmp(what, "release") ||
		   !strcmp(what, "shut")) {
		return act(what, line + n);
	}
	return false;
}

int main(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char line[LINE];

	while (fgets(line, sizeof(line), stdin)) {
		if (!answer(line))
			printf("no such line: %s", line);
		/*
		 * A reader that has sent more lines does not wait for this
		 * answer.
		 */
		if (!poll(&input, 1, 0))
			fflush(stdout);
	}
	return 0;
}

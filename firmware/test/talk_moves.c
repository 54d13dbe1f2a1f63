// SPDX-License-Identifier: MIT
/*
 * The firmware as a party to conversations of an end that moves between two hosts, s
 * and r, with a far end at a third one, f. Package internal/proto/talk describes the
 * events.
 */
#include <stdio.h>
#include <string.h>

#include "pair_rig.h"
#include "talk_moves.h"

enum {
	S,
	R,
	F,
	NONE = 300, /* a target that is none */
	MANY = 16, /* channels of two hosts, at most */
	SAID = 128,
	BOTH = 1 << NFC_H2D | 1 << NFC_D2H,
};

/* A host, and the end that it has, or had. */
struct mover {
	struct rig *host; /* NULL: it is detached */
	uint32_t target;
	uint64_t ticket[2]; /* that it got last, and before */
	uint64_t lies; /* the message that it is offered; 0: none yet */
	uint64_t offers; /* that it offers; 0: none */
	uint32_t halves, closed; /* that the device closed, and the host */
	bool asked; /* the message is asked back, by the host that offered it */
	char said[SAID];
};

static struct {
	struct rig *main;
	struct mover at[3];
	struct pair a, b; /* near at r, far at s */
	struct pair more[MANY]; /* from f to r */
	uint32_t count; /* of them */
	uint8_t sent[2]; /* the last messages of f, and of the other hosts */
} g;

static void say(struct mover *m, const char *text)
{
	size_t n = strlen(m->said);

	snprintf(m->said + n, SAID - n, "|%s", text);
}

static void say_status(struct mover *m, uint64_t status)
{
	static const char *const name[] = {
		[NFC_OK] = "0",
		[NFC_EBUSY] = "EBUSY",
		[NFC_EINVAL] = "EINVAL",
		[NFC_ENOTARGET] = "ENOTARGET",
	};
	char number[24];

	if (status < sizeof(name) / sizeof(*name) && name[status]) {
		say(m, name[status]);
		return;
	}
	snprintf(number, sizeof(number), "status %u", (unsigned int)status);
	say(m, number);
}

static struct nfc_control ask(struct mover *m, uint32_t op, uint64_t a,
			      uint64_t b)
{
	return host_control(m->host, op, a, b, 0, NULL);
}

/* ---- what a host gets ---- */

static void took_record(struct mover *m, const struct nfc_slot *slot)
{
	const struct nfc_ack *ack = (const void *)slot->payload;
	uint32_t type = nfc_header_type(slot->header);

	m->offers = 0;
	m->asked = false;
	if (type == NFC_TYPE_WITHDRAWN)
		say(m, "back");
	else if (type == NFC_TYPE_ACK)
		say(m, "taken");
	else
		say(m, ack->status == NFC_ECLOSED ? "ECLOSED" : "ERROR");
}

/* The number of a message is in it, that of a transfer is its size. */
static void took_offer(struct mover *m, const char *what, uint64_t number)
{
	char text[16];

	m->lies = m->host->channel[m->target].next[NFC_D2H]++;
	snprintf(text, sizeof(text), "%s %u", what, (unsigned int)number);
	say(m, text);
}

static void took_slot(struct mover *m, const struct nfc_slot *slot)
{
	const struct nfc_begin *begin = (const void *)slot->payload;

	switch (nfc_header_type(slot->header)) {
	case NFC_TYPE_DIRECT:
		took_offer(m, "offer", *(const uint8_t *)slot->payload);
		break;
	case NFC_TYPE_IND_BEGIN:
		took_offer(m, "transfer", begin->size);
		break;
	case NFC_TYPE_OFFER:
		say(m, "asked");
		break;
	case NFC_TYPE_READY:
		say(m, "ready");
		break;
	case NFC_TYPE_WITHDRAW:
		break;
	case NFC_TYPE_CLOSE:
		m->halves |= (uint32_t)slot->payload[0];
		break;
	default:
		took_record(m, slot);
	}
}

/* WITHDRAW may be repeated, and CLOSE be in two parts. */
static void take_all(struct mover *m)
{
	bool withdraws = false, closes = false;
	struct nfc_slot slot;

	while (m->host && host_take(m->host, m->target, &slot)) {
		uint32_t type = nfc_header_type(slot.header);

		withdraws |= type == NFC_TYPE_WITHDRAW;
		closes |= type == NFC_TYPE_CLOSE;
		took_slot(m, &slot);
	}
	if (withdraws)
		say(m, "WITHDRAW");
	if (closes)
		say(m, m->halves == BOTH ? "CLOSE" : "shut");
}

/* ---- events of any host ---- */

static bool may_offer(const struct mover *m)
{
	return !m->offers && !((m->halves | m->closed) & 1 << NFC_H2D) &&
	       m->target != NONE;
}

static void send(struct mover *m, uint8_t *last)
{
	if (!may_offer(m))
		return;
	++*last;
	m->offers = host_direct(m->host, m->target, last, 1);
}

static void begin(struct mover *m, uint8_t *last)
{
	if (may_offer(m))
		m->offers = host_begin(m->host, m->target, ++*last, 0);
}

static void ask_ready(struct mover *m)
{
	if (may_offer(m))
		host_note(m->host, m->target, NFC_TYPE_OFFER, NFC_H2D,
			  m->host->channel[m->target].next[NFC_H2D]);
}

static void be_ready(struct mover *m)
{
	if (m->target != NONE)
		host_note(m->host, m->target, NFC_TYPE_READY, NFC_D2H,
			  m->host->channel[m->target].next[NFC_D2H]);
}

static void ask_back(struct mover *m)
{
	if (!m->offers || m->asked)
		return;
	m->asked = true;
	host_note(m->host, m->target, NFC_TYPE_WITHDRAW, NFC_H2D, m->offers);
}

static void answer_offer(struct mover *m, uint32_t type)
{
	if (!m->lies)
		return;
	if (type == NFC_TYPE_ACK)
		host_reply(m->host, m->target, type, NFC_D2H, m->lies,
			   NFC_STATE_CONSUMED, NFC_OK, 0);
	else
		host_note(m->host, m->target, type, NFC_D2H, m->lies);
}

static void shut(struct mover *m, uint32_t halves)
{
	if (m->target != NONE && halves & ~m->closed)
		host_close(m->host, m->target, halves);
	m->closed |= halves;
}

static void detach(struct mover *m)
{
	rig_detach(m->host);
	m->host = NULL;
}

/* ---- events of s and r ---- */

static void get_ticket(uint32_t x, bool itself)
{
	struct mover *m = &g.at[x];
	uint32_t via = x == S ? g.a.at_far : g.a.at_near;
	struct nfc_control c = ask(m, NFC_CONTROL_TICKET, m->target,
				   itself ? m->target : via);

	say_status(m, c.status);
	if (c.status)
		return;
	m->ticket[1] = m->ticket[0];
	m->ticket[0] = c.a;
}

static void claim(uint32_t x, const char *how)
{
	struct mover *m = &g.at[x];
	const struct mover *from = &g.at[strncmp(how, "own", 3) ? !x : x];
	const struct pair *via = !strncmp(how, "other", 5) ? &g.b : &g.a;
	struct nfc_control c = ask(m, NFC_CONTROL_CLAIM,
				   x == S ? via->at_far : via->at_near,
				   from->ticket[!strncmp(how, "old", 3)]);

	say_status(m, c.status);
	if (c.status)
		return;
	m->target = (uint32_t)c.a;
	m->lies = m->offers = 0;
	m->halves = m->closed = 0;
}

static void void_ticket(struct mover *m, bool old)
{
	struct nfc_control c = ask(m, NFC_CONTROL_VOID, m->target,
				   m->ticket[old]);

	if (c.status)
		say_status(m, c.status);
	else
		say(m, c.b ? "moved" : "not moved");
}

static bool of_near(uint32_t x, const char *event)
{
	struct mover *m = &g.at[x];

	if (!strncmp(event, "tickets", 7))
		get_ticket(x, event[7] == ' ');
	else if (!strncmp(event, "claims", 6))
		claim(x, event[6] == ' ' ? event + 7 : "");
	else if (!strncmp(event, "voids", 5))
		void_ticket(m, event[5] == ' ');
	else if (!strncmp(event, "opens", 5))
		say_status(m, (uint64_t)host_open(m->host, m->target));
	else if (!strncmp(event, "sends", 5))
		send(m, &g.sent[1]);
	else if (!strncmp(event, "gives", 5))
		answer_offer(m, NFC_TYPE_WITHDRAWN);
	else if (!strncmp(event, "waits", 5))
		be_ready(m);
	else
		return false;
	return true;
}

static bool of_host(uint32_t x, const char *event)
{
	struct mover *m = &g.at[x];

	if (!m->host)
		return true;
	if (!strncmp(event, "takes", 5))
		answer_offer(m, NFC_TYPE_ACK);
	else if (!strncmp(event, "closes", 6))
		shut(m, BOTH);
	else if (!strncmp(event, "ends", 4))
		detach(m);
	else if (x != F)
		return of_near(x, event);
	else if (!strncmp(event, "sends", 5))
		send(m, &g.sent[0]);
	else if (!strncmp(event, "begins", 6))
		begin(m, &g.sent[0]);
	else if (!strncmp(event, "asks", 4))
		ask_ready(m);
	else if (!strncmp(event, "shuts", 5))
		shut(m, 1 << NFC_H2D);
	else if (!strncmp(event, "withdraws", 9))
		ask_back(m);
	else
		return false;
	return true;
}

/* ---- other events ---- */

static void drop(struct rig *host, uint32_t target)
{
	struct nfc_slot slot;

	if (!host)
		return;
	host_close(host, target, BOTH);
	rig_step(g.main);
	while (host_take(host, target, &slot))
		;
}

/* r has as many channels with f as it may, or none. */
static void fill(bool full)
{
	while (!full && g.count > 0) {
		struct pair *p = &g.more[--g.count];

		drop(g.at[F].host, p->at_near);
		drop(g.at[R].host, p->at_far);
	}
	for (; full && g.at[F].host && g.at[R].host && g.count < MANY;
	     g.count++) {
		struct pair *p = &g.more[g.count];

		if (g.count)
			*p = p[-1];
		pair_connect(p);
		pair_accept(p);
	}
}

/* Is anything kept for a channel? */
static bool keeps(void)
{
	const struct nfc_device *dev = g.main->dev;
	bool any = false;

	for (int i = 0; i < NFC_RELAYS; i++)
		any |= dev->relay[i].ends || dev->relay[i].calls;
	return any;
}

/* ---- lines ---- */

void moves_end(void)
{
	if (!g.main)
		return;
	for (int i = 0; i < 3; i++)
		if (g.at[i].host)
			detach(&g.at[i]);
	rig_step(g.main);
	rig_free(g.main);
	g.main = NULL;
}

static void moves_shape(struct nfc_config *c)
{
	c->hosts = 4;
	c->islands = 2;
	c->channels = 512;
}

/* The listener of a host, to which another one connects. */
static struct pair listen(struct rig *near, struct rig *far)
{
	struct nfc_control c = host_control(far, NFC_CONTROL_LISTEN, 1, 1, 0,
					    NULL);

	host_open(far, (uint32_t)c.b);
	return (struct pair){ .near = near, .far = far, .target = c.b, .id = c.c };
}

static void open_moves(void)
{
	struct pair p;

	moves_end();
	memset(&g, 0, sizeof(g));
	g.main = rig_new(moves_shape);
	g.sent[1] = 100;
	for (uint32_t i = 0; i < 3; i++) {
		g.at[i].host = rig_attach(g.main, 1 + i);
		g.at[i].target = NONE;
		host_hello(g.at[i].host, NFC_CAP_READY);
	}
	p = listen(g.at[F].host, g.at[S].host);
	pair_connect(&p);
	pair_accept(&p);
	g.at[F].target = p.at_near;
	g.at[S].target = p.at_far;
	p.near = g.at[R].host;
	for (int i = 0; i < 2; i++) {
		pair_connect(&p);
		pair_accept(&p);
		*(i ? &g.b : &g.a) = p;
	}
	g.more[0] = listen(g.at[F].host, g.at[R].host);
}

static void add(char *answer, char who, const char *said)
{
	char text[SAID];

	snprintf(text, SAID, "%s", said);
	for (char *word = strtok(text, "|"); word; word = strtok(NULL, "|")) {
		size_t n = strlen(answer);

		snprintf(answer + n, TALK_LINE - n, "%s %c %s",
			 n > 2 ? "," : "", who, word);
	}
}

const char *moves_answer(const char *line, char answer[TALK_LINE])
{
	static const char letter[] = "srf";
	const char *which = strchr(letter, *line);
	bool known = true;

	if (!strncmp(line, "open", 4)) {
		open_moves();
		return "ok";
	}
	if (!g.main)
		return "no: nothing is open";
	if (!strncmp(line, "look", 4))
		return keeps() ? "ok kept" : "ok free";
	for (int i = 0; i < 3; i++)
		g.at[i].said[0] = 0;
	if (which && line[1] == ' ')
		known = of_host((uint32_t)(which - letter), line + 2);
	else if (!strncmp(line, "full", 4) || !strncmp(line, "room", 4))
		fill(*line == 'f');
	else if (!strncmp(line, "a closes", 8))
		drop(g.at[S].host, g.a.at_far);
	else
		known = false;
	if (!known)
		return "no: unknown event";
	rig_step(g.main);
	strcpy(answer, "ok");
	for (int i = 2; i >= 0; i--) {
		take_all(&g.at[i]);
		if (i != F && g.at[i].closed == BOTH)
			g.at[i].target = NONE; /* another channel may get it */
	}
	add(answer, 'f', g.at[F].said);
	add(answer, 's', g.at[S].said);
	add(answer, 'r', g.at[R].said);
	return answer;
}

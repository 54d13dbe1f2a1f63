// SPDX-License-Identifier: MIT
/*
 * The firmware as a party to conversations of a process p that connects to another
 * process, or to a host, o, at its node or at another one. Package
 * internal/proto/talk describes the events.
 */
#include <stdio.h>
#include <string.h>

#include "span_rig.h"
#include "talk_guests.h"

enum {
	HOST = 1, /* kinds of connections, as proto.DialHost … */
	FAR = 2,
	CALLER = THERE, /* port 0 of p */
	OTHER = THERE + 4, /* … of the process that connects before */
	TARGET = HERE, /* … of o, if that is a process; it has the next one, too */
	SAID = 64,
};

/* A process that does what the messages at its port 0 ask for. */
struct actor {
	struct puppet *puppet; /* NULL: it is not */
	uint32_t at; /* node */
	struct nfc_channel *ch; /* to wait at, beside port 0; NULL: there is none */
	char said[SAID]; /* what its calls returned */
};

static struct {
	bool begun;
	uint32_t kind, node; /* where o is */
	struct actor p, o, crowd, *started;
	struct rig *host,
		*near; /* o, if it is a host; the same at the node of p */
	uint64_t listener; /* its process */
	uint32_t own; /* the target of the listener's messages … */
	uint64_t asked; /* … and the id of one that is not answered; 0: none */
	uint64_t word; /* the last message about p; 0: none */
	uint32_t at; /* the target of the channel, at near; 0: none */
	uint64_t halves; /* that were closed there */
	char said[SAID]; /* by the host */
} g;

static void say(char *said, const char *text)
{
	size_t n = strlen(said);

	snprintf(said + n, SAID - n, " %s", text);
}

static void say_status(char *said, int rc)
{
	static const char *const name[] = {
		[NFC_OK] = "0",
		[NFC_ECLOSED] = "ECLOSED",
		[NFC_EBUSY] = "EBUSY",
		[NFC_ENOTARGET] = "ENOTARGET",
		[NFC_ETIMEOUT] = "ETIMEOUT",
		[NFC_ESTOPPED] = "ESTOPPED",
	};
	char number[16];

	if (rc <= 0 && (size_t)-rc < sizeof(name) / sizeof(*name) && name[-rc]) {
		say(said, name[-rc]);
		return;
	}
	snprintf(number, sizeof(number), "%d", rc);
	say(said, number);
}

/* ---- processes ---- */

/* Do what a message asks for. False: end. */
static bool act(struct nfc_process *self, struct actor *a, char command)
{
	struct nfc_channel *ch = NULL;

	if (command == 'c') {
		if (a->ch) /* it is over */
			channel_close(a->ch, BOTH);
		a->ch = NULL;
		say_status(a->said, channel_connect(self, peer, &ch));
		a->ch = ch;
	} else if (command == 'x' && a->ch) {
		channel_close(a->ch, BOTH);
		a->ch = a == &g.o ? a->ch : NULL;
	}
	return command != 'e';
}

static void actor_main(struct nfc_process *self, struct puppet *puppet)
{
	struct actor *a = g.started;
	char command = 0;
	int i;

	(void)puppet;
	do {
		struct nfc_channel *ch[2] = { span_port(self), a->ch };

		i = channel_alt(ch, a->ch ? 2 : 1, UINT64_MAX);
		if (i == 1)
			say_status(a->said, channel_read(a->ch, &command, 1));
		else if (i == 0 && channel_read(ch[0], &command, 1) != 1)
			return;
	} while (i == 1 || (i == 0 && act(self, a, command)));
}

static void target_main(struct nfc_process *self, struct puppet *puppet)
{
	g.o.ch = nfc_channel_of(self, 1);
	actor_main(self, puppet);
}

/* Far, a request whose answer was not sent is repeated meanwhile. */
static void settle(void)
{
	if (g.kind & FAR)
		span_pass(SECOND / 20);
	else
		go(w.rig[0]);
}

static void start(struct actor *a, uint32_t at, uint32_t first)
{
	bool target = a == &g.o;

	*a = (struct actor){ .at = at };
	g.started = a;
	a->puppet = host_launch(w.rig[at], first,
				target ? target_main : actor_main,
				target ? 2 : 1);
	host_open(w.rig[at], first);
	settle();
}

static void command(struct actor *a, char what)
{
	if (a->puppet)
		host_direct(w.rig[a->at], a->puppet->target, &what, 1);
	settle();
}

static void end(struct actor *a)
{
	if (a->puppet)
		span_stop(a->at, a->puppet);
	settle();
	a->puppet = NULL;
}

/* ---- the host ---- */

/* Take the messages that it was sent since. */
static void take_all(void)
{
	struct nfc_slot slot;

	if (!g.host)
		return;
	while (host_take(g.host, g.own, &slot)) {
		uint64_t id = g.host->channel[g.own].next[NFC_D2H];

		if (nfc_header_type(slot.header) == NFC_TYPE_DIRECT) {
			g.host->channel[g.own].next[NFC_D2H]++;
			g.asked = id;
			g.word = slot.payload[0];
			g.at = 0;
			say(g.said, "offer");
		} else if (g.asked) { /* WITHDRAW */
			host_note(g.host, g.own, NFC_TYPE_WITHDRAWN, NFC_D2H,
				  g.asked);
			g.asked = 0;
			settle();
		}
	}
	while (g.at && host_take(g.near, g.at, &slot)) {
		g.halves |= slot.payload[0];
		if (g.halves == BOTH) {
			say(g.said, "CLOSE");
			g.halves = 0;
		}
	}
}

static void answer_word(void)
{
	if (g.asked && g.host)
		host_reply(g.host, g.own, NFC_TYPE_ACK, NFC_D2H, g.asked,
			   NFC_STATE_CONSUMED, NFC_OK, 0);
	g.asked = 0;
	settle();
}

/* Connect to the process at its node, if that is another one, and open the channel. */
static void open_channel(void)
{
	struct nfc_control c;

	if (!g.host)
		return;
	if (!g.word) {
		say(g.said, "ENOTARGET");
		return;
	}
	if (!g.at && g.kind & FAR) {
		c = host_control(g.near, NFC_CONTROL_CONNECT, peer,
				 g.word & 0xff, 0, NULL);
		if (c.status) {
			say_status(g.said, -(int)c.status);
			return;
		}
		g.at = (uint32_t)c.a;
	} else if (!g.at) {
		g.at = (uint32_t)(g.word & ~(uint64_t)NFC_ACCEPT_PROCESS);
	}
	say_status(g.said, -host_open(g.near, g.at));
	settle();
}

static void detach(void)
{
	if (!g.host)
		return;
	span_leave(0, HOST);
	span_leave(1, HOST);
	rig_detach(g.host);
	if (g.near != g.host)
		rig_detach(g.near);
	g.host = g.near = NULL;
	g.asked = 0;
	settle();
}

static void listen(void)
{
	struct nfc_control c;

	g.host = g.near = rig_attach(w.rig[g.node], HOST);
	if (g.kind & FAR)
		g.near = rig_attach(w.rig[0], HOST);
	c = host_control(g.host, NFC_CONTROL_LISTEN, 1, NFC_GUESTS_ALL, 0, NULL);
	g.listener = c.a;
	g.own = (uint32_t)c.b;
	peer = g.kind & FAR ? nfc_id(0, 0, 1, c.c) : c.c;
	host_open(g.host, g.own);
}

/* ---- events ---- */

void guests_end(void)
{
	if (!g.begun)
		return;
	detach();
	span_end();
	g.begun = false;
}

static const char *open_guests(const char *words)
{
	uint32_t kind;

	if (sscanf(words, "%" SCNu32, &kind) != 1)
		return "no: a kind";
	guests_end();
	memset(&g, 0, sizeof(g));
	span_begin(0, 0, 0);
	g.begun = true;
	g.kind = kind;
	g.node = kind & FAR ? 1 : 0;
	if (kind & HOST) {
		listen();
	} else {
		start(&g.o, g.node, TARGET);
		peer = g.node ? nfc_id(0, 0, 1, TARGET + 1) : TARGET + 1;
	}
	settle();
	return "ok";
}

/* Is anything kept for a connection? */
static bool keeps(void)
{
	bool any = false;

	for (int at = 0; at < 2; at++) {
		const struct nfc_device *dev = w.rig[at]->dev;

		for (int i = 0; i < NFC_RELAYS; i++)
			any |= dev->relay[i].ends || dev->relay[i].calls;
		for (int h = 0; h < 2; h++)
			for (int i = 0; dev->host[h] && i < NFC_JOINTS; i++)
				any |= dev->host[h]->joints[i].ends;
		for (int i = 0; i < 2 * NFC_JOINTS; i++)
			any |= w.end[at][i].used;
	}
	return any;
}

static bool is(const char *event, const char *what)
{
	return !strncmp(event, what, strlen(what));
}

static bool of_p(const char *event)
{
	if (is(event, "connects")) {
		if (!g.p.puppet)
			start(&g.p, 0, CALLER);
		command(&g.p, 'c');
	} else if (is(event, "closes")) {
		command(&g.p, 'x');
	} else if (is(event, "ends")) {
		end(&g.p);
	} else {
		return false;
	}
	return true;
}

static bool of_o(const char *event)
{
	bool stops = is(event, "stops");

	if (is(event, "takes")) {
		answer_word();
	} else if (is(event, "opens")) {
		open_channel();
	} else if (is(event, "closes") && g.host && g.at) {
		host_close(g.near, g.at, BOTH);
		settle();
	} else if (is(event, "closes")) {
		command(&g.o, 'x');
	} else if (is(event, "ends") || stops) {
		if (stops && g.host)
			host_control(g.host, NFC_CONTROL_STOP, g.listener, 0, 0,
				     NULL);
		else if (!stops)
			detach();
		if (!(g.kind & HOST))
			end(&g.o);
		take_all();
		end(&g.crowd);
	} else {
		return false;
	}
	return true;
}

/* The other process leaves, whose channel the host has opened and closed. */
static void crowd_leaves(void)
{
	struct nfc_slot slot;

	answer_word();
	if (g.host) {
		open_channel();
		if (g.at)
			host_close(g.near, g.at, BOTH);
		settle();
		while (g.at && host_take(g.near, g.at, &slot))
			;
		g.word = g.at = 0;
		g.said[0] = 0;
	}
	end(&g.crowd);
}

static bool of_none(const char *event)
{
	if (is(event, "crowd")) {
		start(&g.crowd, 0, OTHER);
		command(&g.crowd, 'c');
	} else if (is(event, "turn")) {
		crowd_leaves();
	} else if (is(event, "lose")) {
		lossy.away = true;
		span_pass(SECOND * 3ull / 2);
		if (!(g.kind & HOST))
			end(&g.crowd);
	} else if (is(event, "found")) {
		lossy.away = false;
		settle();
	} else if (is(event, "late")) {
		span_pass(SECOND * 11ull);
	} else {
		return false;
	}
	return true;
}

/* " X Y" is "p X, p Y". */
static void add(char *answer, char who, const char *said)
{
	const char *mark = strlen(answer) > 2 ? "," : "";
	char word[16];
	int n;

	for (; sscanf(said, "%15s%n", word, &n) == 1; said += n) {
		size_t at = strlen(answer);

		snprintf(answer + at, TALK_LINE - at, "%s %c %s", mark, who,
			 word);
		mark = ",";
	}
}

const char *guests_answer(const char *line, char answer[TALK_LINE])
{
	bool known;

	if (is(line, "open "))
		return open_guests(line + 5);
	if (!g.begun)
		return "no: nothing is open";
	strcpy(answer, "ok");
	if (is(line, "look"))
		return keeps() ? "ok o kept" : "ok o free";
	g.p.said[0] = g.o.said[0] = g.said[0] = 0;
	if (is(line, "p "))
		known = of_p(line + 2);
	else
		known = is(line, "o ") ? of_o(line + 2) : of_none(line);
	if (!known)
		return "no: unknown event";
	take_all();
	add(answer, 'p', g.p.said);
	add(answer, 'o', g.o.said);
	add(answer, 'o', g.said);
	return answer;
}

// SPDX-License-Identifier: MIT
/*
 * The programs of the firmware, over channels that they open themselves. Each
 * port is connected to the host that listens at the target in the argument. Its
 * first message has two numbers: that in the bits of the argument which no
 * target uses, and its own. After a close it is connected again, which gives
 * the same channel.
 */
#include <stdatomic.h>
#include <stddef.h>

#include "nfc_fw.h"

enum { PORTS = 256 };

struct port {
	struct nfc_process *self; /* NULL: free */
	struct nfc_channel *ch;
	uint32_t number;
};

static struct port table[PORTS];
static _Atomic int lock; /* of places in the table */

static struct port *place(struct nfc_process *self, uint32_t number,
			  struct nfc_channel *ch)
{
	struct port *found = NULL;

	while (atomic_exchange(&lock, 1))
		;
	for (int i = 0; i < PORTS && !found; i++)
		if (ch ? table[i].ch == ch :
			 table[i].self == self && table[i].number == number)
			found = &table[i];
	for (int i = 0; i < PORTS && !found && !ch; i++)
		if (!table[i].self)
			found = &table[i];
	if (found && !ch) {
		found->self = self;
		found->number = number;
	}
	atomic_store(&lock, 0);
	return found;
}

static void leave(struct nfc_process *self)
{
	while (atomic_exchange(&lock, 1))
		;
	for (int i = 0; i < PORTS; i++)
		if (table[i].self == self)
			table[i] = (struct port){ 0 };
	atomic_store(&lock, 0);
}

/*
 * Until there is room before the listener; a place of its own is free a moment later.
 * False: the process is to stop.
 */
static int join(struct port *port)
{
	uint64_t argument = nfc_argument(port->self);
	uint64_t hello[2] = { (argument >> 24 & 0xff) | (argument >> 56 & 0x7f)
								<< 8,
			      port->number };
	uint64_t id = argument & ~(0xffull << 24 | 0x7full << 56);
	struct nfc_channel *ch;

	nfc_sleep(port->self, 1000);
	while (channel_connect(port->self, id, &ch)) {
		if (nfc_stopped(port->self))
			return 0;
		nfc_sleep(port->self, 100000);
	}
	port->ch = ch;
	return channel_write(ch, hello, sizeof(hello)) != -NFC_ESTOPPED;
}

static struct nfc_channel *port_of(struct nfc_process *self, uint32_t i)
{
	struct port *port;

	if (i >= nfc_ports(self))
		return NULL;
	port = place(self, i, NULL);
	return port->ch || join(port) ? port->ch : NULL;
}

/* Handles the result of a call. If the host closed one half of the channel it waits for the other.
 * */
static int heard(struct nfc_channel *ch, int rc)
{
	uint8_t message[NFC_PAYLOAD_SIZE];

	if (rc != -NFC_ECLOSED)
		return rc;
	while (channel_read(ch, message, sizeof(message)) >= 0)
		;
	channel_close(ch, 1 << NFC_H2D | 1 << NFC_D2H);
	return join(place(NULL, 0, ch)) ? rc : -NFC_ESTOPPED;
}

static int hear_read(struct nfc_channel *ch, void *buf, size_t n)
{
	return heard(ch, channel_read(ch, buf, n));
}

static int hear_read_any(struct nfc_channel *ch, void *buf, size_t n,
			 struct nfc_offer *offer)
{
	return heard(ch, channel_read_any(ch, buf, n, offer));
}

static int hear_read_ind(struct nfc_channel *ch, uint64_t address, uint64_t size)
{
	return heard(ch, channel_read_ind(ch, address, size));
}

static int hear_take(struct nfc_channel *ch, void *buf, size_t n,
		     uint64_t address, uint64_t room, struct nfc_offer *offer)
{
	return heard(ch, channel_take(ch, buf, n, address, room, offer));
}

static int hear_question(struct nfc_channel *ch, void *buf, size_t n,
			 uint64_t address, uint64_t room,
			 struct nfc_offer *offer)
{
	return heard(ch, channel_question(ch, buf, n, address, room, offer));
}

static int hear_offer(struct nfc_channel *ch, struct nfc_offer *offer)
{
	return heard(ch, channel_offer(ch, offer));
}

#undef nfc_channel_of
#undef channel_read
#undef channel_read_any
#undef channel_read_ind
#undef channel_offer
#undef channel_take
#undef channel_question
#define nfc_channel_of port_of
#define channel_read hear_read
#define channel_read_any hear_read_any
#define channel_read_ind hear_read_ind
#define channel_offer hear_offer
#define channel_take hear_take
#define channel_question hear_question
#include "programs/bulk.h"
#include "programs/check.h"
#include "programs/common.h"

#define GUEST(name)                                             \
	static void name##_guest(struct nfc_process *self)      \
	{                                                       \
		uint32_t i = 0;                                 \
                                                                \
		while (i < nfc_ports(self) && port_of(self, i)) \
			i++;                                    \
		if (i == nfc_ports(self))                       \
			nfc_##name##_main(self);                \
		leave(self);                                    \
	}

GUEST(loopback)
GUEST(sink)
GUEST(source)
GUEST(gate)
GUEST(expect)
GUEST(asked)
GUEST(hold)

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "guest.loopback", loopback_guest },
	     { NFC_PROGRAM_ABI, 0, "guest.sink", sink_guest },
	     { NFC_PROGRAM_ABI, 0, "guest.source", source_guest },
	     { NFC_PROGRAM_ABI, 0, "guest.gate", gate_guest },
	     { NFC_PROGRAM_ABI, 0, "guest.expect", expect_guest },
	     { NFC_PROGRAM_ABI, 0, "guest.asked", asked_guest },
	     { NFC_PROGRAM_ABI, 0, "guest.hold", hold_guest });

/* SPDX-License-Identifier: MIT */
/* Declarations that the programs of this tree share. */
#ifndef NFC_PROGRAMS_H
#define NFC_PROGRAMS_H

#include "../nfc_fw.h"

/* Device memory that grows: a program's place for transfers. */
struct nfc_buffer {
	uint64_t address;
	uint64_t size;
};

/* Make room for size bytes of EMEM. Returns 0 or -NFC_ENOMEM. */
int nfc_buffer_fit(struct nfc_process *self, struct nfc_buffer *b,
		   uint64_t size);
/* Give it back. */
void nfc_buffer_drop(struct nfc_process *self, struct nfc_buffer *b);

enum {
	NFC_READER_FEW = 8, /* ports that need no device memory */
};

/* Reads from all ports of a process in turn. Zero at first; it stays in place. */
struct nfc_reader {
	struct nfc_channel *ch; /* where the last read was */
	struct nfc_channel **ports; /* all of them twice: a list from any on */
	uint32_t next; /* after the last read */
	int answers; /* messages are taken as questions */
	struct nfc_channel *few[2 * NFC_READER_FEW];
};

/*
 * Take a message from any port into message, or find a transfer offered there:
 * channel_read_any over all ports, in turn from the one after the last. Returns
 * that call's result, or -NFC_ETIMEOUT if nothing arrived in timeout_ns;
 * UINT64_MAX: for ever. -NFC_ENOMEM, after a pause, if there is no memory for many ports.
 */
int nfc_read_ports(struct nfc_process *self, struct nfc_reader *r,
		   uint8_t message[NFC_PAYLOAD_SIZE], struct nfc_offer *offer,
		   uint64_t timeout_ns);

/*
 * The same, but take a transfer, too, into b, which grows for it. A transfer for
 * which there is no memory is refused.
 */
int nfc_take_ports(struct nfc_process *self, struct nfc_reader *r,
		   uint8_t message[NFC_PAYLOAD_SIZE], struct nfc_offer *offer,
		   struct nfc_buffer *b, uint64_t timeout_ns);

/* Take a transfer of size bytes into b; refuses it when there is no room. */
int nfc_take_transfer(struct nfc_process *self, struct nfc_channel *ch,
		      struct nfc_buffer *b, uint64_t size);

/* All of them; ends with a NULL name. */
extern const struct nfc_program nfc_programs[];
/* Those that keep an island to themselves: of a device with one host alone, if it asks. */
extern const struct nfc_program nfc_lone_programs[];

void nfc_loopback_main(struct nfc_process *self);
void nfc_sink_main(struct nfc_process *self);
void nfc_source_main(struct nfc_process *self);
void nfc_flood_main(struct nfc_process *self);
void nfc_gate_main(struct nfc_process *self);
void nfc_expect_main(struct nfc_process *self);
void nfc_asked_main(struct nfc_process *self);
void nfc_hold_main(struct nfc_process *self);
void nfc_spin_main(struct nfc_process *self);

#endif /* NFC_PROGRAMS_H */

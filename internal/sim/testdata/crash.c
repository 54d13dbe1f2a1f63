// SPDX-License-Identifier: MIT
/* A program that crashes in the way that the first word of a message says. */
#include <stdlib.h>
#include <string.h>

#include "nfc_fw.h"

static volatile uint64_t zero, sum;

static __attribute__((noinline)) uint64_t deeper(uint64_t n)
{
	volatile uint64_t here[64] = { n };

	return n ? deeper(n - 1) + here[0] : 0;
}

/* Uses its stack up but for what is left in a page, then calls the firmware. */
static __attribute__((noinline)) void call_at_the_end(struct nfc_process *self,
						      const char *end)
{
	volatile char here[256];

	here[0] = (char)zero;
	if (here - end > 512)
		call_at_the_end(self, end);
	else
		nfc_yield(self);
	here[1] = here[0];
}

static void wild(struct nfc_process *self)
{
	(void)self;
	*(volatile uint8_t *)16 = 1; /* WILD */
}

static void divide(struct nfc_process *self)
{
	(void)self;
	sum = 7 / zero; /* DIVIDE */
}

static void stop(struct nfc_process *self)
{
	(void)self;
	abort(); /* STOP */
}

static void trap(struct nfc_process *self)
{
	(void)self;
	__builtin_trap(); /* TRAP */
}

static void overrun(struct nfc_process *self)
{
	(void)self;
	sum = deeper(1ull << 40);
}

static void overrun_in_a_call(struct nfc_process *self)
{
	call_at_the_end(self, (char *)__builtin_frame_address(0) - (62 << 10));
}

static void no_channel(struct nfc_process *self)
{
	channel_read(nfc_channel_of(self, 99), NULL, 0); /* CHANNEL */
}

static void no_buffer(struct nfc_process *self)
{
	channel_read(nfc_channel_of(self, 0), (void *)8, 56); /* BUFFER */
}

static void no_line(struct nfc_process *self)
{
	nfc_log(self, (const char *)24); /* LOG */
}

static void in_a_library(struct nfc_process *self)
{
	(void)self;
	memset((void *)(uintptr_t)(zero + 32), 1, 4000 + zero); /* LIBRARY */
}

static void promptly(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	char message[NFC_PAYLOAD_SIZE] = { 0 };

	nfc_prompt(self, 1);
	for (int i = 0; i < 100; i++) {
		channel_write(ch, message, 1);
		channel_read(ch, message, sizeof(message));
	}
	*(volatile uint8_t *)16 = 1; /* PROMPT */
}

/* Those bytes belong to the firmware, which finds the damage. */
static void corrupt(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	char message[NFC_PAYLOAD_SIZE];

	memset((uint64_t *)ch + 10, 0xff, 8); /* where its rings are */
	channel_read(ch, message, sizeof(message));
}

static void (*const ways[])(struct nfc_process *self) = {
	wild,	      divide,	 stop,
	trap,	      overrun,	 overrun_in_a_call,
	no_channel,   no_buffer, no_line,
	in_a_library, promptly,	 corrupt,
};

static void crash_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint64_t way[7];

	while (channel_read(ch, way, sizeof(way)) >= 0) {
		if (way[0] < sizeof(ways) / sizeof(ways[0]))
			ways[way[0]](self);
		channel_write(ch, way, sizeof(way));
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "crash", crash_main },
	     { NFC_PROGRAM_ABI, 0, "early", wild });

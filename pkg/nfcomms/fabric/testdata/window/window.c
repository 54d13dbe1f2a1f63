// SPDX-License-Identifier: MIT
/* Does with windows what each message asks for, and answers with the status and a value. */
#include "nfc_fw.h"

enum {
	WINDOW, /* offset in its memory, bytes, access: the key */
	REVOKE, /* key */
	SUM, /* of the bytes of its memory */
	CLEAR, /* its memory */
	FREE, /* its memory, and have other */
	CRASH,
	MEMORY = 64 << 10,
};

struct request {
	uint64_t what, a, b, c;
};

struct answer {
	int64_t status;
	uint64_t value;
};

static uint64_t sum(const uint8_t *at)
{
	uint64_t n = 0;

	for (int i = 0; i < MEMORY; i++)
		n += at[i];
	return n;
}

static void clear(uint8_t *at)
{
	for (int i = 0; i < MEMORY; i++)
		at[i] = 0;
}

static uint64_t other_memory(struct nfc_process *self, uint64_t memory)
{
	nfc_free(self, memory);
	return nfc_alloc(self, NFC_EMEM, MEMORY);
}

static struct answer serve(struct nfc_process *self, uint64_t *memory,
			   const struct request *r)
{
	struct answer a = { 0, 0 };

	if (r->what == WINDOW)
		a.status = nfc_window(self, *memory + r->a, r->b,
				      (uint32_t)r->c, &a.value);
	else if (r->what == REVOKE)
		a.status = nfc_revoke(self, r->a);
	else if (r->what == SUM)
		a.value = sum(nfc_at(self, *memory, MEMORY));
	else if (r->what == CLEAR)
		clear(nfc_at(self, *memory, MEMORY));
	else if (r->what == FREE)
		*memory = other_memory(self, *memory);
	else
		*(volatile int *)0 = 0;
	return a;
}

static void window_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint64_t memory = nfc_alloc(self, NFC_EMEM, MEMORY);
	struct request r;

	while (channel_read(ch, &r, sizeof(r)) == sizeof(r)) {
		struct answer a = serve(self, &memory, &r);

		channel_write(ch, &a, sizeof(a));
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "window", window_main });

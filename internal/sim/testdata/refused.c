// SPDX-License-Identifier: MIT
/* Images that a device must not run, by macro: each would end the process of its host. */
#include <stdlib.h>

#include "nfc_fw.h"

static int *volatile wild __attribute__((unused)) = (int *)16;

#ifdef MISSPELLED
int chanel_read(struct nfc_channel *ch, void *buf, size_t n);
#define channel_read_as chanel_read
#else
#define channel_read_as channel_read
#endif

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void constructor(void)
{
	*wild = 1;
}
#endif

#ifdef DESTRUCTOR
__attribute__((destructor)) static void destructor(void)
{
	*wild = 1;
}
#endif

#ifdef PICKED
static int picked(void)
{
	return 1;
}

static int (*pick(void))(void)
{
	*wild = 1;
	return picked;
}

static int which(void) __attribute__((ifunc("pick")));
#endif

#ifdef AT_EXIT
static void late(void)
{
	*wild = 1;
}
#endif

static __attribute__((unused)) void refused_main(struct nfc_process *self)
{
	char message[NFC_PAYLOAD_SIZE];

	while (channel_read_as(nfc_channel_of(self, 0), message,
			       sizeof(message)) >= 0) {
#ifdef EXIT
		void (*volatile end)(int) = exit;

		end(*wild);
#endif
#ifdef AT_EXIT
		int (*volatile at_exit)(void (*)(void)) = atexit;

		*wild = at_exit(late);
#endif
#ifdef PICKED
		*wild = which();
#endif
	}
}

#if defined(NO_TABLE)
const struct nfc_api *nfc_api;
#elif defined(WILD_NAME)
NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, (const char *)16, refused_main });
#elif defined(WILD_MAIN)
NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "refused",
	       (void (*)(struct nfc_process *))16 });
#else
NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "refused", refused_main });
#endif

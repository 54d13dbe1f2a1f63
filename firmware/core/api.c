// SPDX-License-Identifier: MIT
/* The calls of nfc_fw.h as the table that loaded programs reach them by. */
#include "calls.h"

const struct nfc_api nfc_api_table = {
	.abi = NFC_PROGRAM_ABI,
	.size = sizeof(struct nfc_api),
	.channel_read = channel_read,
	.channel_read_any = channel_read_any,
	.channel_write = channel_write,
	.channel_read_ind = channel_read_ind,
	.channel_write_ind = channel_write_ind,
	.channel_offer = channel_offer,
	.channel_alt = channel_alt,
	.channel_close = channel_close,
	.channel = nfc_channel_of,
	.ports = nfc_ports,
	.argument = nfc_argument,
	.stopped = nfc_stopped,
	.alloc = nfc_alloc,
	.free = nfc_free,
	.at = nfc_at,
	.yield = nfc_yield,
	.sleep = nfc_sleep,
	.now = nfc_now,
	.log = nfc_log,
	.prompt = nfc_prompt,
};

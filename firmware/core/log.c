// SPDX-License-Identifier: MIT
/* The log: the last lines of a host's processes are kept for it. */
#include "calls.h"

static int wake_log(struct nfc_island *island, void *arg)
{
	struct nfc_process
		*p = ((struct nfc_host *)arg)->shares[island->index].processes;

	for (uint32_t i = 0; i < island->process_count; i++)
		if (p[i].wait == NFC_WAIT_LOG)
			nfc_wake(&p[i], 0);
	return 0;
}

/*
 * Keep a line for the log service; it replaces the oldest when there is no
 * room.
 */
static void keep_line(struct nfc_host *host, const char *line, uint64_t length)
{
	char *to;

	length = nfc_min(length, NFC_PAYLOAD_SIZE);
	nfc_lock(&host->lock);
	if (host->log_tail - host->log_head == NFC_LOG_LINES) {
		host->log_head++;
		host->log_lost++;
	}
	to = host->log_line[host->log_tail++ % NFC_LOG_LINES];
	__builtin_memset(to, 0, NFC_PAYLOAD_SIZE);
	__builtin_memcpy(to, line, length);
	nfc_unlock(&host->lock);
}

uint64_t nfc_line_length(const char *line, uint64_t most)
{
	uint64_t n = 0;

	while (n < most && line[n])
		n++;
	return n;
}

void nfc_log(struct nfc_process *self, const char *line)
{
	const struct nfc_port *port = self->island->dev->port;
	uint64_t length = nfc_line_length(line, NFC_LOG_LINE);

	port->log(port->self, self->host->index, line, length);
	keep_line(self->host, line, length);
	nfc_island_call(self, nfc_island_of(self->host, NFC_TARGET_LOG),
			wake_log, self->host);
}

/* The oldest kept line and its number; false if there is none. */
bool nfc_oldest_line(struct nfc_host *host, char line[NFC_PAYLOAD_SIZE],
		     uint64_t *number)
{
	bool any;

	nfc_lock(&host->lock);
	any = host->log_head != host->log_tail;
	*number = host->log_head;
	if (any)
		__builtin_memcpy(line, host->log_line[*number % NFC_LOG_LINES],
				 NFC_PAYLOAD_SIZE);
	nfc_unlock(&host->lock);
	return any;
}

void nfc_forget_line(struct nfc_host *host, uint64_t number)
{
	nfc_lock(&host->lock);
	if (host->log_head == number)
		host->log_head++;
	nfc_unlock(&host->lock);
}

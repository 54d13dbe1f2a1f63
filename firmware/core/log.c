// SPDX-License-Identifier: MIT
/* The device's log: its last lines are kept for the host. */
#include "calls.h"

static int wake_log(struct nfc_island *island, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < island->process_count; i++)
		if (island->processes[i].wait == NFC_WAIT_LOG)
			nfc_wake(&island->processes[i], 0);
	return 0;
}

/* Keep a line for the log service; the oldest goes when there is no room. */
static void keep_line(struct nfc_device *dev, const char *line, uint64_t length)
{
	char *to;

	length = nfc_min(length, NFC_PAYLOAD_SIZE);
	nfc_lock(dev);
	if (dev->log_tail - dev->log_head == NFC_LOG_LINES) {
		dev->log_head++;
		dev->log_lost++;
	}
	to = dev->log_line[dev->log_tail++ % NFC_LOG_LINES];
	__builtin_memset(to, 0, NFC_PAYLOAD_SIZE);
	__builtin_memcpy(to, line, length);
	nfc_unlock(dev);
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
	struct nfc_device *dev = self->island->dev;
	uint64_t length = nfc_line_length(line, 256);

	dev->port->log(dev->port->self, line, length);
	keep_line(dev, line, length);
	nfc_island_call(self, nfc_island_of(self->host, NFC_TARGET_LOG),
			wake_log, NULL);
}

/* The oldest kept line and its number; false if there is none. */
bool nfc_oldest_line(struct nfc_device *dev, char line[NFC_PAYLOAD_SIZE],
		     uint64_t *number)
{
	bool any;

	nfc_lock(dev);
	any = dev->log_head != dev->log_tail;
	*number = dev->log_head;
	if (any)
		__builtin_memcpy(line, dev->log_line[*number % NFC_LOG_LINES],
				 NFC_PAYLOAD_SIZE);
	nfc_unlock(dev);
	return any;
}

void nfc_forget_line(struct nfc_device *dev, uint64_t number)
{
	nfc_lock(dev);
	if (dev->log_head == number)
		dev->log_head++;
	nfc_unlock(dev);
}

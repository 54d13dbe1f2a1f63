// SPDX-License-Identifier: MIT
/*
 * The calls of nfc_fw.h as the table through which loaded programs reach them.
 * A crash outside these calls is the program's and ends its process. Inside
 * them the firmware works on shared state, and a crash there cannot be
 * contained. So each call first touches the memory that its caller passed, and
 * the stack that it needs. Calls that only read a value skip that.
 */
#include "calls.h"

enum {
	CALL_STACK = 4096, /* bytes of stack that every call does with */
};

/*
 * It may fault here, and may read below its frame: sanitizers must not report
 * that.
 */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))

/* From here on the process is in the firmware. */
UNCHECKED static inline struct nfc_process *api_enter(struct nfc_process *self)
{
	const volatile char *sp = __builtin_frame_address(0);

	(void)sp[-CALL_STACK];
	self->foreign = 0;
	atomic_signal_fence(memory_order_seq_cst);
	return self;
}

UNCHECKED static inline struct nfc_process *api_enter_by(struct nfc_channel *ch)
{
	return api_enter(atomic_load_explicit(&ch->island->current,
					      memory_order_relaxed));
}

static inline int api_leave(struct nfc_process *self, int result)
{
	atomic_signal_fence(memory_order_seq_cst);
	self->foreign = 1;
	return result;
}

/* Touch a buffer that spans at most two pages: its first and its last byte. */
UNCHECKED static inline void api_touch(const volatile char *p, size_t n)
{
	if (!n)
		return;
	(void)p[0];
	(void)p[n - 1];
}

UNCHECKED static inline void api_touch_buffer(volatile char *p, size_t n)
{
	n = nfc_min(n, NFC_PAYLOAD_SIZE);
	if (!n)
		return;
	p[0] = p[0];
	p[n - 1] = p[n - 1];
}

static int api_read(struct nfc_channel *ch, void *buf, size_t n)
{
	struct nfc_process *self;

	api_touch_buffer(buf, n);
	self = api_enter_by(ch);
	return api_leave(self, channel_read(ch, buf, n));
}

static int api_read_any(struct nfc_channel *ch, void *buf, size_t n,
			struct nfc_offer *offer)
{
	struct nfc_process *self;

	api_touch_buffer(buf, n);
	api_touch_buffer((void *)offer, sizeof(*offer));
	self = api_enter_by(ch);
	return api_leave(self, channel_read_any(ch, buf, n, offer));
}

static int api_take(struct nfc_channel *ch, void *buf, size_t n,
		    uint64_t address, uint64_t room, struct nfc_offer *offer)
{
	struct nfc_process *self;

	api_touch_buffer(buf, n);
	api_touch_buffer((void *)offer, sizeof(*offer));
	self = api_enter_by(ch);
	return api_leave(self, channel_take(ch, buf, n, address, room, offer));
}

static int api_question(struct nfc_channel *ch, void *buf, size_t n,
			uint64_t address, uint64_t room, struct nfc_offer *offer)
{
	struct nfc_process *self;

	api_touch_buffer(buf, n);
	api_touch_buffer((void *)offer, sizeof(*offer));
	self = api_enter_by(ch);
	return api_leave(self,
			 channel_question(ch, buf, n, address, room, offer));
}

static int api_reply(struct nfc_channel *ch, const void *buf, size_t n)
{
	struct nfc_process *self;

	api_touch(buf, nfc_min(n, NFC_PAYLOAD_SIZE));
	self = api_enter_by(ch);
	return api_leave(self, channel_reply(ch, buf, n));
}

static int api_write(struct nfc_channel *ch, const void *buf, size_t n)
{
	struct nfc_process *self;

	api_touch(buf, nfc_min(n, NFC_PAYLOAD_SIZE));
	self = api_enter_by(ch);
	return api_leave(self, channel_write(ch, buf, n));
}

static int api_read_ind(struct nfc_channel *ch, uint64_t address, uint64_t size)
{
	struct nfc_process *self = api_enter_by(ch);

	return api_leave(self, channel_read_ind(ch, address, size));
}

static int api_write_ind(struct nfc_channel *ch, uint64_t address, uint64_t size)
{
	struct nfc_process *self = api_enter_by(ch);

	return api_leave(self, channel_write_ind(ch, address, size));
}

static int api_offer(struct nfc_channel *ch, struct nfc_offer *offer)
{
	struct nfc_process *self;

	api_touch_buffer((void *)offer, sizeof(*offer));
	self = api_enter_by(ch);
	return api_leave(self, channel_offer(ch, offer));
}

static int api_alt(struct nfc_channel *const *ch, size_t n, uint64_t timeout_ns)
{
	struct nfc_process *self;

	if (!n)
		return -NFC_EINVAL;
	for (size_t i = 0; i < n; i++)
		api_touch((const void *)ch[i], sizeof(*ch[i]));
	self = api_enter_by(ch[0]);
	return api_leave(self, channel_alt(ch, n, timeout_ns));
}

static void api_close(struct nfc_channel *ch, uint32_t halves)
{
	struct nfc_process *self = api_enter_by(ch);

	channel_close(ch, halves);
	api_leave(self, 0);
}

static int api_connect(struct nfc_process *self, uint64_t target,
		       struct nfc_channel **ch)
{
	api_touch_buffer((void *)ch, sizeof(*ch));
	api_enter(self);
	return api_leave(self, channel_connect(self, target, ch));
}

static uint64_t api_alloc(struct nfc_process *self, enum nfc_memory type,
			  uint64_t size)
{
	uint64_t address = nfc_alloc(api_enter(self), type, size);

	api_leave(self, 0);
	return address;
}

static void api_free(struct nfc_process *self, uint64_t address)
{
	nfc_free(api_enter(self), address);
	api_leave(self, 0);
}

static void *api_at(struct nfc_process *self, uint64_t address, uint64_t size)
{
	void *at = nfc_at(api_enter(self), address, size);

	api_leave(self, 0);
	return at;
}

static void api_yield(struct nfc_process *self)
{
	nfc_yield(api_enter(self));
	api_leave(self, 0);
}

static void api_sleep(struct nfc_process *self, uint64_t ns)
{
	nfc_sleep(api_enter(self), ns);
	api_leave(self, 0);
}

static void api_log(struct nfc_process *self, const char *line)
{
	const volatile char *at = line;

	while (at - line < NFC_LOG_LINE && *at)
		at++;
	nfc_log(api_enter(self), line);
	api_leave(self, 0);
}

static void api_prompt(struct nfc_process *self, int prompt)
{
	nfc_prompt(api_enter(self), prompt);
	api_leave(self, 0);
}

static int api_window(struct nfc_process *self, uint64_t address, uint64_t size,
		      uint32_t access, uint64_t *key)
{
	api_touch_buffer((void *)key, sizeof(*key));
	api_enter(self);
	return api_leave(self, nfc_window(self, address, size, access, key));
}

static int api_revoke(struct nfc_process *self, uint64_t key)
{
	return api_leave(self, nfc_revoke(api_enter(self), key));
}

static void *api_host_at(struct nfc_process *self, uint64_t address,
			 uint64_t size)
{
	void *at = nfc_host_at(api_enter(self), address, size);

	api_leave(self, 0);
	return at;
}

const struct nfc_api nfc_api_table = {
	.abi = NFC_PROGRAM_ABI,
	.size = sizeof(struct nfc_api),
	.channel_read = api_read,
	.channel_read_any = api_read_any,
	.channel_write = api_write,
	.channel_read_ind = api_read_ind,
	.channel_write_ind = api_write_ind,
	.channel_offer = api_offer,
	.channel_alt = api_alt,
	.channel_close = api_close,
	.channel = nfc_channel_of,
	.ports = nfc_ports,
	.argument = nfc_argument,
	.stopped = nfc_stopped,
	.alloc = api_alloc,
	.free = api_free,
	.at = api_at,
	.yield = api_yield,
	.sleep = api_sleep,
	.now = nfc_now,
	.log = api_log,
	.prompt = api_prompt,
	.channel_connect = api_connect,
	.window = api_window,
	.revoke = api_revoke,
	.channel_take = api_take,
	.host_at = api_host_at,
	.channel_question = api_question,
	.channel_reply = api_reply,
};

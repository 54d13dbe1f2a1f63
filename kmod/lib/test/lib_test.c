// SPDX-License-Identifier: MIT
/* Requests of the library to the module, and its results for the answers. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "../../../firmware/nfc_abi.h"
#include "../../../firmware/test/harness.h"
#include "../libnfcomms.h"
#include "fake.h"

/* A device that was opened without a word. */
static struct nfcomms_dev *opened(void)
{
	struct nfcomms_dev *dev = NULL;

	fake_reset();
	CHECK_EQ(nfcomms_open("0", &dev), 0);
	fake.ioctls = 0;
	return dev;
}

CASE(addresses)
{
	static const struct {
		const char *address, *path;
	} good[] = {
		{ "dev:0", "/dev/nfcomms0" },
		{ "0", "/dev/nfcomms0" },
		{ "dev:17", "/dev/nfcomms17" },
		{ "/dev/nfcomms/by-path/pci-x", "/dev/nfcomms/by-path/pci-x" },
		{ "dev:./node", "./node" },
		{ "dev:./node?busy-poll=0us", "./node" },
	};
	static const char *const bad[] = { "",
					   "dev:",
					   "dev:x",
					   "x",
					   "0x1",
					   ":",
					   "0?",
					   "?busy-poll=1us",
					   "0?busy-poll=",
					   "0?busy-poll=-1us",
					   "0?busy-poll= 1us",
					   "0?busy-poll=1ms",
					   "0?busy-poll=10001us",
					   "0?islands=1" };
	struct nfcomms_dev *dev;
	char long_path[400];
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		fake_reset();
		CHECK_EQ(nfcomms_open(good[i].address, &dev), 0);
		CHECK(!strcmp(fake.path, good[i].path));
		CHECK_EQ(fake.open_flags, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		CHECK_EQ(nfcomms_fd(dev), 77);
		nfcomms_close(dev);
		CHECK_EQ(fake.closes, 1);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(nfcomms_open(bad[i], &dev), -EINVAL);
	CHECK_EQ(nfcomms_open(NULL, &dev), -EINVAL);
	CHECK_EQ(nfcomms_open("sim:", NULL), -EINVAL);
	CHECK_EQ(nfcomms_open("0", NULL), -EINVAL);
	memset(long_path, '/', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = 0;
	CHECK_EQ(nfcomms_open(long_path, &dev), -ENAMETOOLONG);
	nfcomms_close(NULL);
}

/* An address that is no node needs another library, which is not there. */
CASE(other_schemes)
{
	static const char *const addresses[] = { "sim:", "shm:/run/0.sock",
						 "sim:?islands=2", "x:./node" };
	struct nfcomms_dev *dev = NULL;
	size_t i;

	fake_reset();
	for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		CHECK_EQ(nfcomms_open(addresses[i], &dev), -ELIBACC);
		CHECK(!dev);
	}
	CHECK(!strcmp(fake.path, "libnfcomms-umod.so.1"));
	CHECK(strstr(nfcomms_strerror(-ELIBACC), fake.path));
}

CASE(null_devices)
{
	uint32_t region;
	struct nfcomms_request r = { .kind = NFCOMMS_SEND };
	struct nfcomms_description d;
	struct nfcomms_heartbeat h;
	struct nfcomms_process p;
	struct nfcomms_offer o;
	struct nfcomms_event e;
	char name[NFCOMMS_NAME_SIZE], m[8];
	struct nfcomms_memory memory;
	uint32_t channel;

	CHECK_EQ(nfcomms_describe(NULL, &d), -EINVAL);
	CHECK_EQ(nfcomms_health(NULL, &h), -EINVAL);
	CHECK_EQ(nfcomms_reset(NULL), -EINVAL);
	CHECK_EQ(nfcomms_start(NULL, "x", 0, 1, 0, &p), -EINVAL);
	CHECK_EQ(nfcomms_stop(NULL, 1), -EINVAL);
	CHECK_EQ(nfcomms_load(NULL, "x", 1, name), -EINVAL);
	CHECK_EQ(nfcomms_program(NULL, 0, name), -EINVAL);
	CHECK_EQ(nfcomms_subscribe(NULL, 1, &channel), -EINVAL);
	CHECK_EQ(nfcomms_unsubscribe(NULL, 1, 3), -EINVAL);
	CHECK_EQ(nfcomms_send(NULL, 1, "x", 1), -EINVAL);
	CHECK_EQ(nfcomms_try_send(NULL, 1, "x", 1), -EINVAL);
	CHECK_EQ(nfcomms_receive(NULL, 1, m, 8), -EINVAL);
	CHECK_EQ(nfcomms_try_receive(NULL, 1, m, 8), -EINVAL);
	CHECK_EQ(nfcomms_send_ind(NULL, 1, m, 8, NULL), -EINVAL);
	CHECK_EQ(nfcomms_receive_ind(NULL, 1, m, 8, NULL), -EINVAL);
	CHECK_EQ(nfcomms_register(NULL, m, 8, &region), -EINVAL);
	CHECK_EQ(nfcomms_import(NULL, 0, 0, 8, &region), -EINVAL);
	CHECK_EQ(nfcomms_unregister(NULL, 1), -EINVAL);
	CHECK_EQ(nfcomms_send_region(NULL, 1, 1, 0, 8, NULL), -EINVAL);
	CHECK_EQ(nfcomms_receive_region(NULL, 1, 1, 0, 8, NULL), -EINVAL);
	CHECK_EQ(nfcomms_listen(NULL, "x", &region), -EINVAL);
	CHECK_EQ(nfcomms_unlisten(NULL, 1), -EINVAL);
	CHECK_EQ(nfcomms_accept(NULL, 1, &channel), -EINVAL);
	CHECK_EQ(nfcomms_dial(NULL, "x", &channel), -EINVAL);
	CHECK_EQ(nfcomms_alloc(NULL, 1, &memory), -EINVAL);
	CHECK_EQ(nfcomms_give(NULL, 1, 1), -EINVAL);
	CHECK_EQ(nfcomms_take(NULL, 1, &memory), -EINVAL);
	CHECK_EQ(nfcomms_next(NULL, 1, &o), -EINVAL);
	CHECK_EQ(nfcomms_fd(NULL), -EINVAL);
	CHECK_EQ(nfcomms_submit(NULL, &r, 1, NULL), -EINVAL);
	CHECK_EQ(nfcomms_events(NULL, &e, 1), -EINVAL);
	CHECK_EQ(nfcomms_cancel(NULL, 1), -EINVAL);
}

CASE(null_places)
{
	struct nfcomms_request r = { .kind = NFCOMMS_SEND, .size = 1 };
	struct nfcomms_dev *dev = opened();

	CHECK_EQ(nfcomms_describe(dev, NULL), -EINVAL);
	CHECK_EQ(nfcomms_health(dev, NULL), -EINVAL);
	CHECK_EQ(nfcomms_start(dev, "x", 0, 1, 0, NULL), -EINVAL);
	CHECK_EQ(nfcomms_load(dev, "x", 1, NULL), -EINVAL);
	CHECK_EQ(nfcomms_program(dev, 0, NULL), -EINVAL);
	CHECK_EQ(nfcomms_subscribe(dev, 1, NULL), -EINVAL);
	CHECK_EQ(nfcomms_next(dev, 1, NULL), -EINVAL);
	CHECK_EQ(nfcomms_submit(dev, NULL, 1, NULL), -EINVAL);
	CHECK_EQ(nfcomms_events(dev, NULL, 1), -EINVAL);
	CHECK_EQ(nfcomms_send(dev, 1, NULL, 1), -EFAULT);
	CHECK_EQ(nfcomms_receive(dev, 1, NULL, 1), -EFAULT);
	CHECK_EQ(nfcomms_submit(dev, &r, 1, NULL), -EFAULT);
	CHECK_EQ(fake.ioctls, 0);
	nfcomms_close(dev);
}

CASE(busy_poll)
{
	struct nfcomms_dev *dev = NULL;

	fake_reset();
	CHECK_EQ(nfcomms_open("/dev/x?busy-poll=10000us", &dev), 0);
	CHECK(!strcmp(fake.path, "/dev/x"));
	CHECK_EQ(fake.setup.size, sizeof(fake.setup));
	CHECK_EQ(fake.setup.completion_size, sizeof(struct nfcomms_completion));
	CHECK_EQ(fake.setup.busy_poll_us, 10000);
	CHECK(!fake.setup.flags);
	nfcomms_close(dev);
	fake_reset();
	fake.fail = EPERM;
	CHECK_EQ(nfcomms_open("0?busy-poll=1us", &dev), -EPERM);
	CHECK_EQ(fake.closes, 1);
}

CASE(open_fails)
{
	struct nfcomms_dev *dev;

	fake_reset();
	fake.open_error = ENOENT;
	CHECK_EQ(nfcomms_open("0", &dev), -ENOENT);
	CHECK_EQ(fake.closes, 0);
	fake_reset();
	fake.uapi = 9u << 16;
	CHECK_EQ(nfcomms_open("0", &dev), -ENOEXEC);
	CHECK_EQ(fake.closes, 1);
	CHECK_EQ(nfcomms_open_fd(77, &dev), -ENOEXEC);
	CHECK_EQ(fake.closes, 1); /* it stays the caller's */
	CHECK_EQ(nfcomms_open_fd(77, NULL), -EINVAL);
	fake_reset();
	fake.interrupts = 3;
	CHECK_EQ(nfcomms_open("0", &dev), 0);
	nfcomms_close(dev);
}

CASE(describe)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_description d;

	fake.info = (struct nfcomms_info){
		.abi = 0x10000,
		.epoch = 3,
		.channels = 4,
		.mailboxes = 5,
		.islands = 6,
		.slots = 7,
		.window = 8,
		.contexts = 9,
		.capabilities = NFC_CAP_LOAD,
		.max_operations = 10,
		.max_transfer = 1ull << 40,
		.memlock_limit = 12,
		.memlock_used = 13,
	};
	memset(fake.info.driver, 'x', sizeof(fake.info.driver));
	CHECK_EQ(nfcomms_describe(dev, &d), 0);
	CHECK(d.abi == 0x10000 && d.epoch == 3 && d.channels == 4 &&
	      d.mailboxes == 5 && d.islands == 6 && d.slots == 7 &&
	      d.window == 8 && d.contexts == 9 && d.can_load == 1 &&
	      d.max_operations == 10);
	CHECK(d.max_transfer == 1ull << 40 && d.memlock_limit == 12 &&
	      d.memlock_used == 13);
	CHECK_EQ(strlen(d.driver), sizeof(d.driver) - 1);
	nfcomms_close(dev);
}

CASE(health)
{
	static const struct {
		unsigned int state;
		int want;
	} states[] = {
		{ NFCOMMS_STATE_READY, 0 },
		{ NFCOMMS_STATE_FAULT, -EHOSTDOWN },
		{ NFCOMMS_STATE_LOST, -ENODEV },
		{ NFCOMMS_STATE_RESETTING, -ENODEV },
		{ NFCOMMS_STATE_REMOVED, -ENODEV },
		{ 99, -ENODEV },
	};
	struct nfcomms_dev *dev = opened();
	struct nfcomms_heartbeat h;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		fake.health = (struct nfcomms_health){
			.state = states[i].state,
			.beat = 1,
			.age_ns = 2,
			.diagnostic = 3,
			.processes = 4,
			.messages = 5,
			.bytes = 6,
			.parked = 7,
		};
		CHECK_EQ(nfcomms_health(dev, &h), states[i].want);
		CHECK(h.beat == 1 && h.age_ns == 2 && h.diagnostic == 3 &&
		      h.processes == 4 && h.messages == 5 && h.bytes == 6 &&
		      h.parked == 7);
	}
	fake.fail = ENODEV;
	CHECK_EQ(nfcomms_health(dev, &h), -ENODEV);
	CHECK_EQ(nfcomms_reset(dev), 0);
	CHECK_EQ(fake.resets, 1);
	fake.fail = EPERM;
	CHECK_EQ(nfcomms_reset(dev), -EPERM);
	nfcomms_close(dev);
}

CASE(every_status_has_an_errno)
{
	struct nfcomms_dev *dev = opened();
	int seen[NFC_STATUS_COUNT], rc;
	unsigned int s, t;

	for (s = NFC_OK; s < NFC_STATUS_COUNT; s++) {
		fake.completion.status = s;
		rc = nfcomms_send(dev, 1, "x", 1);
		CHECK(s ? rc < 0 : !rc);
		CHECK(strcmp(nfcomms_strerror(rc), "unexpected error"));
		for (t = 0; t < s; t++)
			CHECK(seen[t] != rc);
		seen[s] = rc;
	}
	fake.completion.status = NFC_STATUS_COUNT;
	CHECK_EQ(nfcomms_send(dev, 1, "x", 1), -EPROTO);
	CHECK(!strcmp(nfcomms_strerror(-9999), "unexpected error"));
	CHECK(!strcmp(nfcomms_strerror(5), "success"));
	fake.completion.status = NFC_OK;
	fake.completion.error = EFAULT;
	CHECK_EQ(nfcomms_send(dev, 1, "x", 1), -EFAULT);
	nfcomms_close(dev);
}

CASE(messages)
{
	struct nfcomms_dev *dev = opened();
	char m[60];

	CHECK_EQ(nfcomms_send(dev, 7, "hello", 5), 0);
	CHECK(fake.op.opcode == NFCOMMS_OP_SEND && fake.op.channel == 7 &&
	      !fake.op.flags && fake.op.length == 5 && !fake.op.address);
	CHECK(!memcmp(fake.op.payload, "hello\0", 6));
	CHECK_EQ(nfcomms_send(dev, 7, NULL, 0), 0);
	fake.ioctls = 0;
	CHECK_EQ(nfcomms_send(dev, 7, m, 57), -E2BIG);
	CHECK_EQ(fake.ioctls, 0);

	fake.completion.length = 4;
	memcpy(fake.completion.payload, "back", 4);
	CHECK_EQ(nfcomms_receive(dev, 8, m, sizeof(m)), 4);
	CHECK(fake.op.opcode == NFCOMMS_OP_RECEIVE && fake.op.channel == 8 &&
	      fake.op.length == 56);
	CHECK(!memcmp(m, "back", 4));
	CHECK_EQ(nfcomms_receive(dev, 8, m, 4), 4);
	CHECK_EQ(fake.op.length, 4);
	CHECK_EQ(nfcomms_receive(dev, 8, m, 3), -EPROTO); /* more than asked */
	fake.completion.length = 0;
	CHECK_EQ(nfcomms_receive(dev, 8, NULL, 0), 0);

	fake.completion.flags = NFCOMMS_NOT_NOW;
	fake.completion.status = NFC_EWITHDRAWN;
	CHECK_EQ(nfcomms_try_send(dev, 7, "x", 1), -EAGAIN);
	CHECK_EQ(fake.op.flags, NFCOMMS_NOWAIT);
	CHECK_EQ(nfcomms_try_receive(dev, 7, m, 1), -EAGAIN);
	CHECK_EQ(fake.op.flags, NFCOMMS_NOWAIT);
	fake.completion.flags = 0;
	fake.completion.status = NFC_ECLOSED;
	CHECK_EQ(nfcomms_try_send(dev, 7, "x", 1), -EPIPE);
	CHECK_EQ(nfcomms_try_receive(dev, 7, m, 1), -EPIPE);

	fake.interrupts = 1; /* the operation was taken back: not again */
	CHECK_EQ(nfcomms_send(dev, 7, "x", 1), -EINTR);
	fake.fail = ENOENT;
	CHECK_EQ(nfcomms_receive(dev, 7, m, 1), -ENOENT);
	nfcomms_close(dev);
}

/* How a call ends with a completion. */
static int call_ends(struct nfcomms_dev *dev, uint16_t flags, uint32_t status,
		     uint64_t length, void *answer, size_t room)
{
	fake.completion = (struct nfcomms_completion){ .flags = flags,
						       .status = status,
						       .length = length };
	memcpy(fake.completion.payload, "back", 4);
	return nfcomms_call(dev, 7, "x", 1, answer, room);
}

CASE(calls)
{
	const uint16_t taken = NFCOMMS_TAKEN;
	struct nfcomms_dev *dev;
	char m[57];

	fake_reset();
	CHECK_EQ(nfcomms_call(NULL, 7, "x", 1, m, 56), -EINVAL);
	CHECK_EQ(nfcomms_open("0", &dev), 0); /* of version 3.0 */
	CHECK_EQ(call_ends(dev, 0, NFC_ECLOSED, 0, m, 56), -EPIPE);
	CHECK_EQ(fake.op.opcode, NFCOMMS_OP_SEND);
	nfcomms_close(dev);
	fake.uapi |= 1;
	CHECK_EQ(nfcomms_open("0", &dev), 0);
	fake.ioctls = 0;
	CHECK_EQ(nfcomms_call(dev, 7, m, 57, m, 56), -E2BIG);
	CHECK_EQ(nfcomms_call(dev, 7, NULL, 1, m, 56), -EFAULT);
	CHECK_EQ(nfcomms_call(dev, 7, "x", 1, NULL, 56), -EFAULT);
	CHECK_EQ(fake.ioctls, 0);

	CHECK_EQ(call_ends(dev, taken, NFC_OK, 4, m, 56), 4);
	CHECK(fake.op.opcode == NFCOMMS_OP_ASK && fake.op.channel == 7 &&
	      fake.op.length == 1 && fake.op.payload[0] == 'x');
	CHECK(!memcmp(m, "back", 4));
	CHECK_EQ(call_ends(dev, taken, NFC_OK, 0, NULL, 0), 0);
	CHECK_EQ(call_ends(dev, taken, NFC_OK, 4, m, 3), -E2BIG);
	CHECK_EQ(call_ends(dev, taken, NFC_OK, 57, m, 57), -EPROTO);
	CHECK_EQ(call_ends(dev, taken, NFC_EWITHDRAWN, 0, m, 56), -ENODATA);
	CHECK_EQ(call_ends(dev, taken, NFC_ECLOSED, 0, m, 56), -ENODATA);
	CHECK_EQ(call_ends(dev, 0, NFC_EWITHDRAWN, 0, m, 56), -ECANCELED);
	CHECK_EQ(call_ends(dev, 0, NFC_ECLOSED, 0, m, 56), -EPIPE);
	CHECK_EQ(call_ends(dev, 0, NFC_OK, 4, m, 56), 4); /* a message each way */
	CHECK_EQ(fake.op.opcode, NFCOMMS_OP_RECEIVE);
	fake.interrupts = 1;
	CHECK_EQ(nfcomms_call(dev, 7, "x", 1, m, 56), -EINTR);
	nfcomms_close(dev);
}

CASE(transfers)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_failure f;
	struct nfcomms_offer offer;
	char data[100];

	CHECK_EQ(nfcomms_send_ind(dev, 3, data, 100, NULL), 0);
	CHECK(fake.op.opcode == NFCOMMS_OP_SEND_IND && fake.op.channel == 3 &&
	      fake.op.address == (uintptr_t)data && fake.op.length == 100 &&
	      !fake.op.timeout_ns);
	CHECK_EQ(nfcomms_receive_ind(dev, 3, data, 0, NULL), 0);
	CHECK(fake.op.opcode == NFCOMMS_OP_RECEIVE_IND && !fake.op.address);

	fake.completion = (struct nfcomms_completion){
		.status = NFC_EDMA,
		.processed = 60,
		.outstanding = 40,
		.peer_size = 5,
		.limit = 6,
		.list = 6,
		.entry = 2,
	};
	CHECK_EQ(nfcomms_receive_ind(dev, 3, data, 100, &f), -EIO);
	CHECK(f.processed == 60 && f.outstanding == 40 && f.peer_size == 5 &&
	      f.limit == 6 && f.list == 6 && f.entry == 2);
	fake.fail = EINVAL;
	CHECK_EQ(nfcomms_send_ind(dev, 3, data, 100, &f), -EINVAL);
	CHECK(!f.processed && !f.outstanding && !f.peer_size);

	fake.completion = (struct nfcomms_completion){ .flags = NFCOMMS_INDIRECT,
						       .length = 1ull << 33 };
	CHECK_EQ(nfcomms_next(dev, 3, &offer), 0);
	CHECK(offer.indirect == 1 && offer.size == 1ull << 33);
	fake.completion.status = NFC_ECLOSED;
	CHECK_EQ(nfcomms_next(dev, 3, &offer), -EPIPE);
	nfcomms_close(dev);
}

/* The completion of a control operation: one of its structures. */
static void reply(const void *answer)
{
	fake.completion.status = NFC_OK;
	memcpy(fake.completion.payload, answer, NFCOMMS_PAYLOAD_SIZE);
}

static void reply_status(uint16_t status)
{
	struct nfcomms_request_process head = { .status = status };

	reply(&head);
}

/* Copy the request of the last control operation. */
static void asked(void *request)
{
	CHECK_EQ(fake.op.opcode, NFCOMMS_OP_CONTROL);
	CHECK_EQ(fake.op.channel, 0);
	memcpy(request, fake.op.payload, NFCOMMS_PAYLOAD_SIZE);
}

/* The module has no channels between hosts. */
CASE(no_hosts)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_memory m;
	uint32_t n;

	CHECK_EQ(nfcomms_listen(dev, "x", &n), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_unlisten(dev, 1), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_accept(dev, 1, &n), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_dial(dev, "x", &n), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_alloc(dev, 1, &m), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_give(dev, 1, 1), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_take(dev, 1, &m), -EOPNOTSUPP);
	nfcomms_close(dev);
}

CASE(regions)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_register want = { .size = sizeof(want), .length = 100 };
	struct nfcomms_request r = {
		.kind = NFCOMMS_SEND_IND, .size = 30, .region = 4, .offset = 50
	};
	char bytes[100];
	uint32_t region = 0;

	want.address = (uintptr_t)bytes;
	CHECK_EQ(nfcomms_register(dev, bytes, 100, &region), 0);
	CHECK(!memcmp(&fake.region, &want, sizeof(want)));
	CHECK_EQ(region, FAKE_REGION);
	CHECK_EQ(nfcomms_register(dev, bytes, 100, NULL), -EINVAL);
	want.flags = NFCOMMS_REGION_DMA_BUF;
	want.address = 0;
	want.fd = 5;
	want.offset = 1ull << 33;
	CHECK_EQ(nfcomms_import(dev, 5, 1ull << 33, 100, &region), 0);
	CHECK(!memcmp(&fake.region, &want, sizeof(want)));
	CHECK_EQ(nfcomms_send_region(dev, 3, 9, 20, 70, NULL), 0);
	CHECK(fake.op.opcode == NFCOMMS_OP_SEND_IND && fake.op.channel == 3 &&
	      fake.op.region == 9 && fake.op.offset == 20 &&
	      fake.op.length == 70 && !fake.op.address);
	CHECK_EQ(nfcomms_receive_region(dev, 3, 9, 0, 70, NULL), 0);
	CHECK_EQ(fake.op.opcode, NFCOMMS_OP_RECEIVE_IND);
	CHECK_EQ(nfcomms_send_region(dev, 3, 0, 0, 70, NULL), -ENOENT);
	CHECK_EQ(nfcomms_submit(dev, &r, 1, NULL), 1);
	CHECK(fake.taken[0].region == 4 && fake.taken[0].offset == 50 &&
	      !fake.taken[0].address);
	CHECK_EQ(nfcomms_unregister(dev, 9), 0);
	CHECK_EQ(fake.unregistered, 9);
	fake.interrupts = 2;
	CHECK_EQ(nfcomms_register(dev, bytes, 1, &region), 0);
	fake.fail = ENOSPC;
	CHECK_EQ(nfcomms_register(dev, bytes, 1, &region), -ENOSPC);
	fake.fail = EBUSY;
	CHECK_EQ(nfcomms_unregister(dev, 9), -EBUSY);
	nfcomms_close(dev);
}

CASE(processes)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_process p;
	struct nfcomms_request_start c = { .process = 99, .first = 17 };
	struct nfcomms_request_process stop;

	reply(&c);
	CHECK_EQ(nfcomms_start(dev, "echo", 16, 2, 5, &p), 0);
	CHECK(p.id == 99 && p.first == 17 && p.targets == 2);
	asked(&c);
	CHECK(c.request == NFCOMMS_CONTROL_START && c.first == 16 &&
	      c.targets == 2 && c.argument == 5 && !c.process && !c.rsvd &&
	      !strcmp((char *)c.name, "echo"));
	CHECK_EQ(nfcomms_start(dev, NULL, 0, 1, 0, &p), -ENOENT);
	CHECK_EQ(nfcomms_start(dev, "", 0, 1, 0, &p), -ENOENT);
	CHECK_EQ(nfcomms_start(dev, "a name that is far too long", 0, 1, 0, &p),
		 -ENOENT);
	reply_status(NFC_EBUSY);
	CHECK_EQ(nfcomms_start(dev, "echo", 0, 1, 0, &p), -EBUSY);
	CHECK_EQ(nfcomms_stop(dev, 42), -EBUSY);
	asked(&stop);
	CHECK(stop.request == NFCOMMS_CONTROL_STOP && stop.process == 42);
	fake.completion.status = NFC_ERESET;
	CHECK_EQ(nfcomms_stop(dev, 42), -ENODEV);
	nfcomms_close(dev);
}

CASE(programs)
{
	struct nfcomms_dev *dev = opened();
	char name[NFCOMMS_NAME_SIZE] = "unchanged";
	struct nfcomms_request_load load = { .text = "mine" };
	struct nfcomms_request_program c;

	reply(&load);
	CHECK_EQ(nfcomms_load(dev, "image", 6, name), 0);
	CHECK(!strcmp(name, "mine") && fake.op.length == 6 && fake.op.address);
	CHECK_EQ(nfcomms_load(dev, "", 0, name), -EINVAL);
	CHECK_EQ(nfcomms_program(dev, 3, name), 0);
	asked(&c);
	CHECK(c.request == NFCOMMS_CONTROL_PROGRAM && c.index == 3);
	memset(c.name, 'x', sizeof(c.name));
	reply(&c);
	CHECK_EQ(nfcomms_program(dev, 3, name), -EPROTO);
	CHECK(!strcmp(name, "mine"));
	reply_status(NFC_ENOPROGRAM);
	CHECK_EQ(nfcomms_program(dev, 4, name), -ENOENT);
	nfcomms_close(dev);
}

CASE(subscriptions)
{
	struct nfcomms_dev *dev = opened();
	uint32_t channel = 0;

	fake.completion.channel = 12;
	CHECK_EQ(nfcomms_subscribe(dev, 33, &channel), 0);
	CHECK(channel == 12 && fake.op.opcode == NFCOMMS_OP_SUBSCRIBE &&
	      fake.op.target == 33 && !fake.op.channel);
	fake.completion.status = NFC_ENOTARGET;
	CHECK_EQ(nfcomms_subscribe(dev, 33, &channel), -ENXIO);
	fake.completion.status = NFC_OK;
	fake.interrupts = 2; /* a close is waited for all the same */
	CHECK_EQ(nfcomms_unsubscribe(dev, 12, NFCOMMS_SENDING), 0);
	CHECK(fake.op.opcode == NFCOMMS_OP_CLOSE && fake.op.channel == 12 &&
	      fake.op.flags == NFCOMMS_H2D);
	CHECK_EQ(nfcomms_unsubscribe(dev, 12, NFCOMMS_RECEIVING), 0);
	CHECK_EQ(fake.op.flags, NFCOMMS_D2H);
	fake.fail = ENOENT;
	CHECK_EQ(nfcomms_unsubscribe(dev, 12, 3), 0);
	CHECK_EQ(nfcomms_unsubscribe(dev, 12, 0), -EINVAL);
	CHECK_EQ(nfcomms_unsubscribe(dev, 12, 4), -EINVAL);
	nfcomms_close(dev);
}

CASE(requests)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_request r[6] = {
		{ NFCOMMS_SEND, 1, 11, "hello", 5, 0, 0, 0 },
		{ NFCOMMS_RECEIVE, 2, 12, NULL, 0, 0, 0, 0 },
		{ NFCOMMS_SEND_IND, 3, 13, r, 30, 0, 0, 0 },
		{ NFCOMMS_RECEIVE_IND, 4, 14, r, 0, 0, 0, 0 },
		{ NFCOMMS_NEXT, 5, 15, NULL, 0, 0, 0, 0 },
		{ NFCOMMS_CLOSE, 6, 16, NULL, NFCOMMS_RECEIVING, 0, 0, 0 },
	};
	static const uint16_t opcodes[] = {
		NFCOMMS_OP_SEND,	NFCOMMS_OP_RECEIVE, NFCOMMS_OP_SEND_IND,
		NFCOMMS_OP_RECEIVE_IND, NFCOMMS_OP_NEXT,    NFCOMMS_OP_CLOSE
	};
	static const uint64_t lengths[] = { 5, 56, 30, 0, 0, 0 };
	uint64_t ids[6];
	unsigned int i;

	CHECK_EQ(nfcomms_submit(dev, r, 6, ids), 6);
	CHECK_EQ(ids[0], 1000);
	CHECK_EQ(ids[5], 1005);
	for (i = 0; i < 6; i++) {
		CHECK_EQ(fake.taken[i].opcode, opcodes[i]);
		CHECK_EQ(fake.taken[i].channel, i + 1);
		CHECK_EQ(fake.taken[i].user_data, i + 11);
		CHECK_EQ(fake.taken[i].length, lengths[i]);
		CHECK_EQ(fake.taken[i].address, i == 2 ? (uintptr_t)r : 0);
		CHECK_EQ(fake.taken[i].flags, i == 5 ? NFCOMMS_D2H : 0);
	}
	CHECK(!memcmp(fake.taken[0].payload, "hello\0", 6));
	CHECK_EQ(nfcomms_submit(dev, r, 0, NULL), 0);
	CHECK_EQ(nfcomms_cancel(dev, 13), 0);
	CHECK_EQ(fake.cancelled, 13);
	fake.fail = ENOENT;
	CHECK_EQ(nfcomms_cancel(dev, 13), -ENOENT);
	nfcomms_close(dev);
}

CASE(requests_in_batches)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_request r[100];
	uint64_t ids[100];
	unsigned int i;

	for (i = 0; i < 100; i++)
		r[i] = (struct nfcomms_request){
			NFCOMMS_NEXT, 1, i, NULL, 0, 0, 0, 0
		};
	CHECK_EQ(nfcomms_submit(dev, r, 100, ids), 100);
	CHECK_EQ(ids[31], 1031);
	CHECK_EQ(ids[32], 2000); /* of the second batch */
	CHECK_EQ(ids[99], 4003);
	for (i = 0; i < 100; i++)
		CHECK_EQ(fake.taken[i].user_data, i);

	fake.taken_count = 0;
	r[40].kind = 99;
	CHECK_EQ(nfcomms_submit(dev, r, 100, NULL), 40);
	CHECK_EQ(fake.taken_count, 40);
	CHECK_EQ(nfcomms_submit(dev, r + 40, 60, NULL), -EINVAL);
	r[40] = (struct nfcomms_request){ NFCOMMS_SEND, 1, 1, r, 57, 0, 0, 0 };
	CHECK_EQ(nfcomms_submit(dev, r + 40, 60, NULL), -E2BIG);
	r[40] = (struct nfcomms_request){ NFCOMMS_CLOSE, 1, 1, NULL, 4, 0, 0, 0 };
	CHECK_EQ(nfcomms_submit(dev, r + 40, 60, NULL), -EINVAL);
	r[40].kind = 0;
	CHECK_EQ(nfcomms_submit(dev, r + 40, 60, NULL), -EINVAL);

	fake.taken_count = 0;
	fake.accepts = 35; /* the module is full in the second batch */
	fake.refusal = EAGAIN;
	CHECK_EQ(nfcomms_submit(dev, r, 40, NULL), 35);
	CHECK_EQ(nfcomms_submit(dev, r + 35, 5, NULL), -EAGAIN);
	fake.accepts = 32; /* … or between two */
	CHECK_EQ(nfcomms_submit(dev, r, 40, NULL), 32);
	nfcomms_close(dev);
}

CASE(events)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_event e[80];
	unsigned int i;

	CHECK_EQ(nfcomms_events(dev, e, 80), 0);
	CHECK_EQ(nfcomms_events(dev, e, 0), -EINVAL);
	fake.ready_count = 40;
	for (i = 0; i < 40; i++)
		fake.ready[i] = (struct nfcomms_completion){
			.user_data = i,
			.id = i + 1000,
			.epoch = 7,
			.opcode = NFCOMMS_OP_RECEIVE_IND,
			.status = i ? NFC_ESIZE : NFC_OK,
			.channel = 100 + i,
			.length = 7,
			.processed = 1,
			.outstanding = 2,
			.peer_size = 3,
			.list = 4,
			.entry = 5,
			.payload = "message",
		};
	fake.ready[1].opcode = NFCOMMS_OP_NEXT;
	fake.ready[1].flags = NFCOMMS_INDIRECT;
	fake.ready[1].status = NFC_OK;
	fake.interrupts = 2;
	CHECK_EQ(nfcomms_events(dev, e, 2), 2);
	CHECK(e[0].token == 0 && e[0].id == 1000 && e[0].epoch == 7 &&
	      e[0].kind == NFCOMMS_RECEIVE_IND && e[0].channel == 100 &&
	      !e[0].result && e[0].size == 7 && !e[0].indirect &&
	      !memcmp(e[0].message, "message", 7));
	CHECK(e[1].kind == NFCOMMS_NEXT && e[1].indirect == 1);
	CHECK_EQ(nfcomms_events(dev, e, 80), 32);
	CHECK(e[0].token == 2 && e[0].result == -EMSGSIZE &&
	      e[0].failure.processed == 1 && e[0].failure.outstanding == 2 &&
	      e[0].failure.peer_size == 3 && e[0].failure.list == 4 &&
	      e[0].failure.entry == 5);
	CHECK_EQ(nfcomms_events(dev, e, 80), 6);
	CHECK_EQ(nfcomms_events(dev, e, 80), 0);
	fake.gone = 1;
	CHECK_EQ(nfcomms_events(dev, e, 80), -ENODEV);
	fake.fail = EFAULT;
	CHECK_EQ(nfcomms_events(dev, e, 80), -EFAULT);
	nfcomms_close(dev);
}

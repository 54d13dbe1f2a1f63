// SPDX-License-Identifier: MIT
/*
 * One test for each way an ioctl can be wrong, with everything else valid.
 * A refused call changes nothing: after each the channel still works.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"

/* The flaw of a structure: these bytes of it. */
struct flaw {
	const char *name;
	size_t at, width;
	uint64_t value;
	int error;
};

static void spoil(void *p, const struct flaw *f)
{
	memcpy((uint8_t *)p + f->at, &f->value, f->width);
}

#define FIELD(type, field) \
	offsetof(struct type, field), sizeof(((struct type *)0)->field)
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* Every ioctl that begins with its size treats it alike. */
static void check_sizes(int fd, const char *name, unsigned long request,
			void *valid, size_t size)
{
	static const struct {
		uint32_t size;
		int error;
	} wrong[] = {
		{ 0, EINVAL }, { 4, EINVAL }, { 1 << 20, E2BIG }, { ~0u, E2BIG }
	};
	uint8_t *larger = pages(2 * NFC_PAGE_SIZE, 0);
	int without = control(fd, request, valid);

	for (size_t i = 0; i < COUNT(wrong); i++) {
		memcpy(larger, valid, size);
		memcpy(larger, &wrong[i].size, 4);
		if (!CHECK_EQ(control(fd, request, larger), wrong[i].error))
			printf("%s: size %u\n", name, wrong[i].size);
	}
	/* A later user's structure: fine while what we do not know is zero. */
	memcpy(larger, valid, size);
	*(uint32_t *)larger = size + 16;
	CHECK_EQ(control(fd, request, larger), without);
	larger[size + 15] = 1;
	if (!CHECK_EQ(control(fd, request, larger), E2BIG))
		printf("%s: unknown tail\n", name);
	free_pages(larger, 2 * NFC_PAGE_SIZE);
}

CASE(sizes_of_structures)
{
	struct bench b = setup();
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_health health = { .size = sizeof(health) };
	struct nfcomms_cancel cancel = { .size = sizeof(cancel), .id = 77 };
	struct nfcomms_channel channel = { .size = sizeof(channel),
					   .channel = b.ch };
	struct nfcomms_op op = operation(NFCOMMS_OP_COUNT, 0);
	struct nfcomms_submit submit = { .size = sizeof(submit),
					 .count = 1,
					 .op_size = sizeof(op),
					 .ops = (uintptr_t)&op };
	struct nfcomms_setup setup = {
		.size = sizeof(setup),
		.completion_size = NFCOMMS_COMPLETION_SIZE_FIRST,
	};
	struct nfcomms_completion c;
	struct nfcomms_call call = call_for(&op, &c);

	check_sizes(b.fd, "SETUP", NFCOMMS_IOC_SETUP, &setup, sizeof(setup));
	check_sizes(b.fd, "INFO", NFCOMMS_IOC_INFO, &info, sizeof(info));
	check_sizes(b.fd, "HEALTH", NFCOMMS_IOC_HEALTH, &health, sizeof(health));
	check_sizes(b.fd, "CANCEL", NFCOMMS_IOC_CANCEL, &cancel, sizeof(cancel));
	check_sizes(b.fd, "CHANNEL", NFCOMMS_IOC_CHANNEL, &channel,
		    sizeof(channel));
	check_sizes(b.fd, "SUBMIT", NFCOMMS_IOC_SUBMIT, &submit, sizeof(submit));
	check_sizes(b.fd, "CALL", NFCOMMS_IOC_CALL, &call, sizeof(call));
	teardown(&b);
}

CASE(pointers_to_nowhere)
{
	static const uint64_t bad[] = { 0,
					1,
					0x1000,
					0x0000800000000000ull,
					0xffff800000000000ull,
					~0ull - 7 };
	static const unsigned long requests[] = {
		NFCOMMS_IOC_INFO,    NFCOMMS_IOC_HEALTH, NFCOMMS_IOC_SUBMIT,
		NFCOMMS_IOC_CALL,    NFCOMMS_IOC_CANCEL, NFCOMMS_IOC_RESET,
		NFCOMMS_IOC_CHANNEL,
	};
	struct bench b = setup();

	for (size_t i = 0; i < COUNT(requests); i++)
		for (size_t k = 0; k < COUNT(bad); k++)
			CHECK_EQ(control(b.fd, requests[i], (void *)bad[k]),
				 EFAULT);
	teardown(&b);
}

/* The structure can be read, and the answer not be written. */
static int to_read_only(int fd, unsigned long request, const void *in,
			size_t size)
{
	uint8_t *p = pages(NFC_PAGE_SIZE, 0);
	int error;

	memcpy(p, in, size);
	mprotect(p, NFC_PAGE_SIZE, PROT_READ);
	error = control(fd, request, p);
	free_pages(p, NFC_PAGE_SIZE);
	return error;
}

CASE(results_to_read_only_memory)
{
	struct bench b = setup();
	struct nfcomms_op op = message(b.ch, "x", 1);
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_health health = { .size = sizeof(health) };
	struct nfcomms_channel channel = { .size = sizeof(channel),
					   .channel = b.ch };
	struct nfcomms_submit submit = { .size = sizeof(submit),
					 .count = 1,
					 .op_size = sizeof(op),
					 .ops = (uintptr_t)&op };
	uint8_t *fixed = pages(NFC_PAGE_SIZE, 0);
	struct nfcomms_call call = call_for(&op, (void *)fixed);

	mprotect(fixed, NFC_PAGE_SIZE, PROT_READ);
	CHECK_EQ(to_read_only(b.fd, NFCOMMS_IOC_INFO, &info, sizeof(info)),
		 EFAULT);
	CHECK_EQ(to_read_only(b.fd, NFCOMMS_IOC_HEALTH, &health, sizeof(health)),
		 EFAULT);
	CHECK_EQ(to_read_only(b.fd, NFCOMMS_IOC_CHANNEL, &channel,
			      sizeof(channel)),
		 EFAULT);
	/* These begin nothing: no message comes back. */
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_CALL, &call), EFAULT);
	free_pages(fixed, NFC_PAGE_SIZE);
	CHECK_EQ(to_read_only(b.fd, NFCOMMS_IOC_SUBMIT, &submit, sizeof(submit)),
		 EFAULT);
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_HEALTH, &health), 0);
	CHECK_EQ(health.operations, 0);
	check_alive(b.fd, b.ch);
	teardown(&b);
}

CASE(unknown_requests)
{
	struct bench b = setup();
	struct nfcomms_info info = { .size = sizeof(info) };

	for (unsigned int nr = 0; nr < 256; nr++) { /* no size, and NVMe's */
		CHECK_EQ(control(b.fd, _IO(NFCOMMS_IOC_TYPE, nr), &info),
			 ENOTTY);
		CHECK_EQ(control(b.fd, _IO('N', nr), &info), ENOTTY);
		CHECK_EQ(control(b.fd, _IOWR('N', nr, struct nfcomms_info),
				 &info),
			 ENOTTY);
	}
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_INFO ^ 1 << _IOC_SIZESHIFT, &info),
		 ENOTTY);
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_INFO ^ _IOC_READ << _IOC_DIRSHIFT,
			 &info),
		 ENOTTY);
	teardown(&b);
}

static const struct flaw setup_flaws[] = {
	{ "flags", FIELD(nfcomms_setup, flags), 1, EINVAL },
	{ "no records", FIELD(nfcomms_setup, completion_size), 0, EINVAL },
	{ "short records", FIELD(nfcomms_setup, completion_size),
	  NFCOMMS_COMPLETION_SIZE_FIRST - 8, EINVAL },
	{ "huge records", FIELD(nfcomms_setup, completion_size), 1 << 20, E2BIG },
	{ "first reserved", FIELD(nfcomms_setup, rsvd[0]), 1, EINVAL },
	{ "long busy poll", FIELD(nfcomms_setup, busy_poll_us), 10001, EINVAL },
	{ "last reserved", FIELD(nfcomms_setup, rsvd[3]), 1, EINVAL },
};

CASE(wrong_setups)
{
	struct bench b = setup();

	for (size_t i = 0; i < COUNT(setup_flaws); i++) {
		struct nfcomms_setup s = {
			.size = sizeof(s),
			.completion_size = NFCOMMS_COMPLETION_SIZE_FIRST,
		};

		spoil(&s, &setup_flaws[i]);
		if (!CHECK_EQ(control(b.fd, NFCOMMS_IOC_SETUP, &s),
			      setup_flaws[i].error))
			printf("%s\n", setup_flaws[i].name);
	}
	teardown(&b);
}

/* A later user's completions: what we do not know of them is zero. */
CASE(larger_completions)
{
	struct {
		struct nfcomms_completion c;
		uint64_t later[3];
	} out[3];
	struct bench b = setup();
	struct nfcomms_setup s = { .size = sizeof(s),
				   .completion_size = sizeof(out[0]) };
	struct pollfd p = { .fd = b.fd, .events = POLLIN };
	struct nfcomms_op op = message(b.ch, "x", 1);
	struct nfcomms_op receive = operation(NFCOMMS_OP_RECEIVE, b.ch);
	struct nfcomms_call call = call_for(&receive, &out[0].c);

	CHECK_EQ(control(b.fd, NFCOMMS_IOC_SETUP, &s), 0);
	CHECK_EQ(submit(b.fd, &op, 1), 1);
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	memset(out, 0xff, sizeof(out));
	CHECK_EQ(read(b.fd, out, sizeof(out[0]) - 1), -1);
	CHECK_EQ(read(b.fd, out, sizeof(out)), sizeof(out[0]));
	CHECK_EQ(out[0].c.opcode, NFCOMMS_OP_SEND);
	CHECK(!out[0].later[0] && !out[0].later[2]);
	memset(out, 0xff, sizeof(out));
	receive.length = NFCOMMS_PAYLOAD_SIZE;
	call.completion_size = sizeof(out[0]);
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_CALL, &call), 0);
	CHECK_EQ(out[0].c.length, 1);
	CHECK(!out[0].later[0] && !out[0].later[2]);
	CHECK_EQ(out[1].c.opcode, 0xffff);
	teardown(&b);
}

/* The times of an operation that asks for them: they are in order, and within the call. */
static struct nfcomms_stamps stamps_of(int fd, struct nfcomms_op op)
{
	struct nfcomms_record r;
	struct nfcomms_call call = call_for(&op, &r.completion);
	uint64_t before = now_ns();
	const struct nfcomms_stamps *s = &r.stamps;

	op.flags |= NFCOMMS_STAMPED;
	call.completion_size = sizeof(r);
	CHECK_EQ(control(fd, NFCOMMS_IOC_CALL, &call), 0);
	CHECK_EQ(r.completion.status, NFC_OK);
	CHECK(before <= s->taken_ns && s->taken_ns <= s->put_ns);
	CHECK(s->put_ns <= s->completed_ns && s->completed_ns <= now_ns());
	return *s;
}

CASE(stamps)
{
	enum { SIZE = 1 << 20 };
	struct bench b = setup();
	struct nfcomms_op receive = operation(NFCOMMS_OP_RECEIVE, b.ch);
	uint8_t *p = pages(SIZE, 'x');
	struct nfcomms_stamps s;

	for (uint64_t size = NFC_PAGE_SIZE; size <= SIZE;
	     size *= SIZE / NFC_PAGE_SIZE) {
		for (int d = 0; d < 2; d++) { /* eager, then with lists */
			s = stamps_of(b.fd, transfer(d ? NFCOMMS_OP_RECEIVE_IND :
							 NFCOMMS_OP_SEND_IND,
						     b.ch, p, size));
			CHECK(d || (s.taken_ns <= s.ready_ns &&
				    s.ready_ns <= s.put_ns));
			CHECK(s.put_ns <= s.answered_ns &&
			      s.answered_ns <= s.completed_ns);
			CHECK(s.began_ns && s.began_ns <= s.done_ns);
			CHECK(s.met_ns <= s.done_ns);
		}
	}
	s = stamps_of(b.fd, message(b.ch, "x", 1));
	CHECK(s.ready_ns <= s.put_ns && s.put_ns <= s.answered_ns);
	CHECK(s.began_ns && s.began_ns <= s.done_ns && !s.met_ns);
	receive.length = NFCOMMS_PAYLOAD_SIZE;
	s = stamps_of(b.fd, receive);
	CHECK(s.ready_ns <= s.put_ns && !s.answered_ns && !s.done_ns);
	free_pages(p, SIZE);
	teardown(&b);
}

static const struct flaw submit_flaws[] = {
	{ "no operation", FIELD(nfcomms_submit, count), 0, EINVAL },
	{ "257 operations", FIELD(nfcomms_submit, count), 257, EINVAL },
	{ "4 billion operations", FIELD(nfcomms_submit, count), ~0u, EINVAL },
	{ "operations at 0", FIELD(nfcomms_submit, ops), 0, EFAULT },
	{ "operations of the kernel", FIELD(nfcomms_submit, ops),
	  0xffff888000000000ull, EFAULT },
	{ "short operations", FIELD(nfcomms_submit, op_size), 64, EINVAL },
	{ "empty operations", FIELD(nfcomms_submit, op_size), 0, EINVAL },
	{ "huge operations", FIELD(nfcomms_submit, op_size), ~0u, E2BIG },
	{ "reserved", FIELD(nfcomms_submit, rsvd), 1, EINVAL },
};

CASE(wrong_submits)
{
	struct bench b = setup();
	struct nfcomms_op op = message(b.ch, "x", 1);

	for (size_t i = 0; i < COUNT(submit_flaws); i++) {
		struct nfcomms_submit s = { .size = sizeof(s),
					    .count = 1,
					    .op_size = sizeof(op),
					    .ops = (uintptr_t)&op };

		spoil(&s, &submit_flaws[i]);
		if (!CHECK_EQ(control(b.fd, NFCOMMS_IOC_SUBMIT, &s),
			      submit_flaws[i].error))
			printf("%s\n", submit_flaws[i].name);
	}
	teardown(&b);
}

/* Operations of a later user: fine while what we do not know is zero. */
CASE(larger_operations)
{
	struct bench b = setup();
	struct {
		struct nfcomms_op op;
		uint64_t later;
	} larger = { .op = message(b.ch, "x", 1) };
	struct nfcomms_submit s = { .size = sizeof(s),
				    .count = 1,
				    .op_size = sizeof(larger),
				    .ops = (uintptr_t)&larger };
	struct nfcomms_op receive = operation(NFCOMMS_OP_RECEIVE, b.ch);
	struct nfcomms_completion c;

	larger.later = 1ull << 63;
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_SUBMIT, &s), E2BIG);
	larger.later = 0;
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_SUBMIT, &s), 0);
	CHECK(reap(b.fd, &c) && c.status == NFC_OK);
	receive.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(outcome(b.fd, &receive), NFC_OK);
	teardown(&b);
}

/*
 * An operation larger than a page is refused, though all fields beyond ours are
 * zero.
 */
CASE(operations_larger_than_a_page)
{
	struct bench b = setup();
	uint8_t *at = pages(2 * NFC_PAGE_SIZE, 0);
	struct nfcomms_op op = message(b.ch, "x", 1);
	struct nfcomms_submit s = { .size = sizeof(s),
				    .count = 1,
				    .op_size = NFC_PAGE_SIZE + 8,
				    .ops = (uintptr_t)at };

	memcpy(at, &op, sizeof(op));
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_SUBMIT, &s), E2BIG);
	free_pages(at, 2 * NFC_PAGE_SIZE);
	teardown(&b);
}

/* The second of two operations lies where nothing is. */
CASE(operations_that_leave_memory)
{
	struct bench b = setup();
	uint8_t *p = pages(2 * NFC_PAGE_SIZE, 0);
	uint8_t *at = p + NFC_PAGE_SIZE - sizeof(struct nfcomms_op);
	struct nfcomms_op op = message(b.ch, "x", 1);
	struct nfcomms_op receive = operation(NFCOMMS_OP_RECEIVE, b.ch);
	struct nfcomms_submit s = { .size = sizeof(s),
				    .count = 2,
				    .op_size = sizeof(op),
				    .ops = (uintptr_t)at };
	struct nfcomms_completion c;

	memcpy(at, &op, sizeof(op));
	munmap(p + NFC_PAGE_SIZE, NFC_PAGE_SIZE);
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_SUBMIT, &s), 0);
	CHECK_EQ(s.accepted, 1);
	CHECK_EQ(s.error, EFAULT);
	CHECK(reap(b.fd, &c) && c.status == NFC_OK);
	receive.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(outcome(b.fd, &receive), NFC_OK);
	free_pages(p, NFC_PAGE_SIZE);
	teardown(&b);
}

static const struct flaw call_flaws[] = {
	{ "flags", FIELD(nfcomms_call, flags), 1, EINVAL },
	{ "an operation at 0", FIELD(nfcomms_call, op), 0, EFAULT },
	{ "a completion at 0", FIELD(nfcomms_call, completion), 0, EFAULT },
	{ "a completion of the kernel", FIELD(nfcomms_call, completion),
	  0xffff888000000000ull, EFAULT },
	{ "a short operation", FIELD(nfcomms_call, op_size), 120, EINVAL },
	{ "a short completion", FIELD(nfcomms_call, completion_size), 120,
	  EINVAL },
	{ "a huge operation", FIELD(nfcomms_call, op_size), ~0u, E2BIG },
	{ "a huge completion", FIELD(nfcomms_call, completion_size), ~0u, E2BIG },
	{ "first reserved", FIELD(nfcomms_call, rsvd[0]), 1, EINVAL },
	{ "last reserved", FIELD(nfcomms_call, rsvd[1]), 1, EINVAL },
};

CASE(wrong_calls_and_cancels)
{
	struct bench b = setup();
	struct nfcomms_op op = message(b.ch, "x", 1);
	struct nfcomms_completion out;
	struct nfcomms_cancel cancel = { .size = sizeof(cancel) };

	for (size_t i = 0; i < COUNT(call_flaws); i++) {
		struct nfcomms_call call = call_for(&op, &out);

		spoil(&call, &call_flaws[i]);
		if (!CHECK_EQ(control(b.fd, NFCOMMS_IOC_CALL, &call),
			      call_flaws[i].error))
			printf("%s\n", call_flaws[i].name);
	}
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_CANCEL, &cancel), ENOENT);
	cancel.flags = 1;
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_CANCEL, &cancel), EINVAL);
	cancel.flags = 0;
	for (int k = 0; k < 2; k++) {
		cancel.rsvd[k] = 1ull << 63;
		CHECK_EQ(control(b.fd, NFCOMMS_IOC_CANCEL, &cancel), EINVAL);
		cancel.rsvd[k] = 0;
	}
	teardown(&b);
}

static const struct flaw channel_flaws[] = {
	{ "no channel", FIELD(nfcomms_channel, channel), 0, ENOENT },
	{ "another's channel", FIELD(nfcomms_channel, channel), 12345, ENOENT },
	{ "negative channel", FIELD(nfcomms_channel, channel), ~0u, ENOENT },
	{ "first reserved", FIELD(nfcomms_channel, rsvd[0]), 1, EINVAL },
	{ "reserved", FIELD(nfcomms_channel, rsvd[2]), 1, EINVAL },
	{ "last reserved", FIELD(nfcomms_channel, rsvd[3]), 1, EINVAL },
};

CASE(wrong_channels)
{
	struct bench b = setup();

	for (size_t i = 0; i < COUNT(channel_flaws); i++) {
		struct nfcomms_channel c = { .size = sizeof(c),
					     .channel = b.ch };

		spoil(&c, &channel_flaws[i]);
		if (!CHECK_EQ(control(b.fd, NFCOMMS_IOC_CHANNEL, &c),
			      channel_flaws[i].error))
			printf("%s\n", channel_flaws[i].name);
	}
	teardown(&b);
}

static const struct flaw reset_flaws[] = {
	{ "flags", FIELD(nfcomms_reset, flags), 1, EINVAL },
	{ "first reserved", FIELD(nfcomms_reset, rsvd[0]), 1, EINVAL },
	{ "last reserved", FIELD(nfcomms_reset, rsvd[3]), 1, EINVAL },
	{ "all channels", FIELD(nfcomms_reset, channels), ~0u, EINVAL },
	{ "too many channels", FIELD(nfcomms_reset, channels),
	  NFC_CHANNELS_MAX + 1, EINVAL },
	{ "too many mailboxes", FIELD(nfcomms_reset, mailboxes), 65, EINVAL },
	{ "too many islands", FIELD(nfcomms_reset, islands), 17, EINVAL },
	{ "too few slots", FIELD(nfcomms_reset, slots), NFC_SLOTS_MIN / 2,
	  EINVAL },
	{ "odd slots", FIELD(nfcomms_reset, slots), 100, EINVAL },
	{ "too many slots", FIELD(nfcomms_reset, slots), 2 * NFC_SLOTS_MAX,
	  EINVAL },
	{ "odd window", FIELD(nfcomms_reset, window), 3, EINVAL },
	{ "a window too large", FIELD(nfcomms_reset, window),
	  2 * NFC_WINDOW_MAX, EINVAL },
	{ "more memory than a register holds", FIELD(nfcomms_reset, emem),
	  1ull << 44, EINVAL },
};

/* A refused shape leaves the device in the epoch it has. */
CASE(wrong_resets)
{
	struct bench b = setup();
	struct nfcomms_info before = { .size = sizeof(before) },
			    after = { .size = sizeof(after) };

	CHECK_EQ(control(b.fd, NFCOMMS_IOC_INFO, &before), 0);
	for (size_t i = 0; i < COUNT(reset_flaws); i++) {
		struct nfcomms_reset r = { .size = sizeof(r) };

		spoil(&r, &reset_flaws[i]);
		if (!CHECK_EQ(control(b.fd, NFCOMMS_IOC_RESET, &r),
			      reset_flaws[i].error))
			printf("%s\n", reset_flaws[i].name);
	}
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_INFO, &after), 0);
	CHECK_EQ(after.epoch, before.epoch);
	teardown(&b);
}

static int reset_as_nobody(void *argument)
{
	struct nfcomms_reset r = { .size = sizeof(r) };
	int fd = *(int *)argument;

	if (setgid(65534) || setuid(65534))
		return 1;
	return control(fd, NFCOMMS_IOC_RESET, &r) != EPERM;
}

CASE(reset_needs_privilege)
{
	struct bench b = setup();

	CHECK_EQ(wait_child(child(reset_as_nobody, &b.fd)), 0);
	teardown(&b);
}

/* The ioctl of a structure of another size is refused as by its size. */
CASE(sizes_of_resets)
{
	struct bench b = setup();
	struct nfcomms_reset r = { .size = sizeof(r), .flags = 1 };

	check_sizes(b.fd, "RESET", NFCOMMS_IOC_RESET, &r, sizeof(r));
	teardown(&b);
}

CASE(reads)
{
	struct bench b = setup();
	struct nfcomms_op op = message(b.ch, "a", 1);
	struct nfcomms_completion c;
	struct pollfd p = { .fd = b.fd, .events = POLLIN };
	struct nfcomms_op receive = operation(NFCOMMS_OP_RECEIVE, b.ch);

	CHECK_EQ(read(b.fd, &c, sizeof(c)), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(submit(b.fd, &op, 1), 1);
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	CHECK_EQ(read(b.fd, &c, sizeof(c) - 1), -1); /* no room for one */
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(read(b.fd, (void *)0xffff888000000000, sizeof(c)), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(read(b.fd, &c, sizeof(c)), (ssize_t)sizeof(c)); /* not lost */
	CHECK_EQ(c.status, NFC_OK);
	CHECK_EQ(write(b.fd, &c, sizeof(c)), -1);
	CHECK_EQ(lseek(b.fd, 0, SEEK_SET), -1);
	receive.length = 56;
	CHECK_EQ(outcome(b.fd, &receive), NFC_OK);
	teardown(&b);
}

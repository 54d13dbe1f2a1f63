// SPDX-License-Identifier: MIT
/*
 * Random and structured ioctls from several threads on several files at once,
 * over memory that changes below them, under signals. Nothing is expected of a
 * single call but an honest errno; of all of them, that the device still works,
 * that every accepted operation gave one completion, and that no page is left.
 * Calls and fields are those of the interface's header: one that is new is in the
 * table, and is tried.
 *
 *	fuzz [CALLS]	NFC_SEED=n repeats a run as far as threads allow
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"
#include "uapi_table.h"

enum {
	THREADS = 4,
	FILES = 6,
	CHANNELS = 8, /* per file, that the fuzzer remembers */
	MEMORY = 2 << 20,
	REGION = MEMORY / 8,
	CALLS = 20000, /* without an argument */
	ERRNO_COUNT = 134,
	HANDLES = 32, /* of regions that operations name */
	RECENT = 64, /* ids that a CANCEL may name */
	SMALL = 40, /* numbers that mean something are below this, mostly */
	DESCRIPTORS = 3,
	WORDS = 64, /* of a structure that is nonsense */
	/* Bytes of a structure that the module may write, whatever size it is told. */
	CALL_MAX = 2 * NFC_PAGE_SIZE,
	CALLS_PER_SIGNAL = 4,
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* One file and what is known of it; a slot's lock is held only to look. */
struct slot {
	pthread_rwlock_t lock; /* read: the descriptor stays open */
	int fd;
	uint32_t channel[CHANNELS]; /* those with an odd index are sinks */
	uint64_t accepted, completed; /* atomically */
	uint64_t ids; /* of its operations, at most */
};

static struct slot slots[FILES];
static uint8_t *memory;
static volatile bool over;
static uint64_t tally[ERRNO_COUNT], reached_dma;
static int descriptors[DESCRIPTORS]; /* of all kinds */
static uint64_t calls_asked, calls_left, calls_made;
static pthread_t threads[THREADS];

static const char *const programs[] = { "loopback", "sink",  "source",
					"hold",	    "flood", "gate" };

static const char *any_program(uint64_t *rng)
{
	return programs[next_random(rng) % 6];
}

static void count(int error)
{
	if (error < 0 || error >= ERRNO_COUNT)
		printf("errno %d reached user space\n", error);
	CHECK(error >= 0 && error < ERRNO_COUNT); /* 512 and its like */
	if (error >= 0 && error < ERRNO_COUNT)
		__atomic_fetch_add(&tally[error], 1, __ATOMIC_RELAXED);
}

static void connect_slot(struct slot *s, uint64_t *rng)
{
	uint32_t first;

	s->fd = open(node(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
	CHECK(s->fd >= 0);
	s->accepted = s->completed = s->ids = 0;
	for (int i = 0; i < CHANNELS; i++) {
		struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
		struct nfcomms_request_start c = {
			.request = NFCOMMS_CONTROL_START
		};
		struct nfcomms_completion out;

		strcpy((char *)c.name, i % 2 ? "sink" : any_program(rng));
		c.targets = strcmp((char *)c.name, "gate") ? 1 : 2;
		memcpy(op.payload, &c, sizeof(c));
		if (call(s->fd, &op, &out))
			continue;
		memcpy(&c, out.payload, sizeof(c));
		first = c.first;
		op = operation(NFCOMMS_OP_SUBSCRIBE, 0);
		op.target = first;
		if (!call(s->fd, &op, &out) && out.status == NFC_OK)
			s->channel[i] = out.channel;
	}
}

static uint64_t odd_value(uint64_t *rng)
{
	static const uint64_t odd[] = {
		0,	    1,		2,	    55,
		56,	    57,		4095,	    4096,
		4097,	    1ull << 31, 1ull << 32, 1ull << 40,
		1ull << 48, 1ull << 63, ~0ull,	    0xffff800000000000ull
	};
	uint64_t r = next_random(rng);

	return r & 1 ? odd[(r >> 1) % 16] : r >> (r >> 58);
}

/* Seldom at much: hundreds of pages cost as much as fifty calls. */
static void aim(struct nfcomms_op *op, uint64_t *rng)
{
	uint64_t at = next_random(rng) % MEMORY;

	op->address = (uintptr_t)memory + at;
	op->length = next_random(rng) % (MEMORY - at);
	if (next_random(rng) % 32)
		op->length %= 8 * NFC_PAGE_SIZE;
}

/* A number that means something, if its name is one that the fuzzer knows. */
static uint64_t number(const struct uapi_field *f, const struct slot *s,
		       uint64_t *rng)
{
	uint64_t r = next_random(rng);

	if (!strcmp(f->name, "channel"))
		return s->channel[r % CHANNELS];
	if (!strcmp(f->name, "region"))
		return 1 + r % HANDLES;
	if (!strcmp(f->name, "length"))
		return 1 + r % (REGION + NFC_PAGE_SIZE);
	if (!strcmp(f->name, "id"))
		return __atomic_load_n(&s->ids, __ATOMIC_RELAXED) - r % RECENT;
	return r & 1 ? 0 : (r >> 1) % SMALL;
}

/* A value that a caller that knows the interface may put there. */
static uint64_t likely(const struct uapi_field *f, const struct slot *s,
		       uint64_t *rng)
{
	uint64_t r = next_random(rng);

	switch (f->kind) {
	case UAPI_KIND_SIZE:
		return f->bytes;
	case UAPI_KIND_MEMORY:
		return (uintptr_t)memory + r % 8 * REGION;
	case UAPI_KIND_DESCRIPTOR:
		return r & 1 ? 0 : descriptors[(r >> 1) % DESCRIPTORS];
	case UAPI_KIND_CHOICE: /* one of them, two, or none */
		return (r & 3 ? f->choice[(r >> 8) % f->choices] : 0) |
		       (r & 28 ? 0 : f->choice[(r >> 16) % f->choices]);
	case UAPI_KIND_NUMBER:
		return number(f, s, rng);
	default:
		return 0;
	}
}

/* Fill one field, or the beginning of a long one. */
static void fill_field(uint8_t *at, const struct uapi_field *f, uint64_t value)
{
	memcpy(at + f->offset, &value, f->size < 8 ? f->size : 8);
}

/*
 * Fill a structure, but for addresses of others, which are there; a text is the name
 * of a program. One field may be odd.
 */
static void fill(void *to, const struct uapi_struct *u, const struct slot *s,
		 uint64_t *rng)
{
	for (size_t i = 0; i < u->fields; i++) {
		const struct uapi_field *f = &u->field[i];

		if (f->kind == UAPI_KIND_BYTES)
			strcpy((char *)to + f->offset, any_program(rng));
		else if (f->kind != UAPI_KIND_ADDRESS)
			fill_field(to, f, likely(f, s, rng));
	}
	if (next_random(rng) % 4 == 0)
		fill_field(to, &u->field[next_random(rng) % u->fields],
			   odd_value(rng));
}

/* Any request of a CONTROL. */
static void request(struct nfcomms_op *op, const struct slot *s, uint64_t *rng)
{
	uint16_t what;

	fill(op->payload,
	     &uapi_requests[next_random(rng) % COUNT(uapi_requests)], s, rng);
	memcpy(&what, op->payload, sizeof(what));
	if (what == NFCOMMS_CONTROL_LOAD)
		aim(op, rng);
}

/*
 * An operation that the channel may well take: half of them are transfers to
 * a sink, or too few would get as far as DMA.
 */
static struct nfcomms_op choose(const struct slot *s, uint64_t *rng)
{
	uint32_t i = next_random(rng) % CHANNELS;

	if (next_random(rng) % 2)
		return operation(NFCOMMS_OP_SEND_IND, s->channel[i | 1]);
	return operation(next_random(rng) % NFCOMMS_OP_COUNT, s->channel[i]);
}

/* A likely operation, with something wrong in it now and then. */
static struct nfcomms_op invent(const struct slot *s, uint64_t *rng)
{
	struct nfcomms_op op = choose(s, rng);

	switch (op.opcode) {
	case NFCOMMS_OP_SUBSCRIBE:
		op.channel = 0;
		op.target = next_random(rng) % 64;
		break;
	case NFCOMMS_OP_CLOSE:
		if (next_random(rng) % 8) /* else most channels are closed */
			op.opcode = NFCOMMS_OP_SEND_IND;
		else
			op.flags = 1 + next_random(rng) % 3;
		break;
	case NFCOMMS_OP_ARM:
		op.flags = 1 << next_random(rng) % 2;
		break;
	case NFCOMMS_OP_SEND:
	case NFCOMMS_OP_ASK:
	case NFCOMMS_OP_RECEIVE:
		op.length = next_random(rng) % 57;
		op.flags = next_random(rng) % 8 ? 0 : NFCOMMS_NOWAIT;
		break;
	case NFCOMMS_OP_CONTROL:
		op.channel = 0;
		request(&op, s, rng);
		break;
	}
	if (op.opcode == NFCOMMS_OP_SEND_IND ||
	    op.opcode == NFCOMMS_OP_RECEIVE_IND)
		aim(&op, rng);
	if (op.address && next_random(rng) % 4 == 0) {
		op.region = 1 + next_random(rng) % HANDLES;
		op.offset = next_random(rng) % REGION;
		op.address = 0;
	}
	if (op.opcode == NFCOMMS_OP_RECEIVE_IND && next_random(rng) % 8 == 0)
		op.flags = NFCOMMS_HOLD;
	if (next_random(rng) % 8 == 0) {
		const struct uapi_field
			*f = &nfcomms_op_fields[next_random(rng) %
						COUNT(nfcomms_op_fields)];

		fill_field((uint8_t *)&op, f,
			   next_random(rng) % 2 ? odd_value(rng) :
						  likely(f, s, rng));
	}
	op.user_data = next_random(rng) % 4;
	return op;
}

static void note(const struct nfcomms_completion *c)
{
	if (c->opcode == NFCOMMS_OP_SEND_IND ||
	    c->opcode == NFCOMMS_OP_RECEIVE_IND)
		if (c->lists || c->status == NFC_OK) /* eager ones need no list */
			__atomic_fetch_add(&reached_dma, 1, __ATOMIC_RELAXED);
	if (c->error)
		count(c->error);
	CHECK(c->status < NFC_STATUS_COUNT);
}

/* The ids of a slot's operations are below this. */
static void note_ids(struct slot *s, uint64_t end)
{
	uint64_t last = __atomic_load_n(&s->ids, __ATOMIC_RELAXED);

	while (last < end &&
	       !__atomic_compare_exchange_n(&s->ids, &last, end, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Mostly a few operations at once, as clients do; full batches now and then. */
static void do_submit(struct slot *s, uint64_t *rng)
{
	struct nfcomms_op ops[8];
	unsigned int n = 1 + next_random(rng) % (1 + next_random(rng) % 8);
	int taken;

	for (unsigned int i = 0; i < n; i++)
		ops[i] = invent(s, rng);
	taken = submit(s->fd, ops, n);
	count(taken < 0 ? -taken : 0);
	note_ids(s, taken_id() + n);
	if (taken > 0)
		__atomic_fetch_add(&s->accepted, taken, __ATOMIC_RELAXED);
}

static void do_call(struct slot *s, uint64_t *rng)
{
	struct nfcomms_op op = invent(s, rng);
	struct nfcomms_completion c = { .status = 0 };
	int error = call(s->fd, &op, &c);

	count(error);
	if (!error)
		note(&c);
}

static void do_read(struct slot *s)
{
	struct nfcomms_completion c[16];
	ssize_t n = read(s->fd, c, sizeof(c));

	if (n < 0) {
		count(errno);
		return;
	}
	CHECK_EQ(n % sizeof(*c), 0);
	for (size_t i = 0; i < n / sizeof(*c); i++)
		note(&c[i]);
	__atomic_fetch_add(&s->completed, n / sizeof(*c), __ATOMIC_RELAXED);
}

/* Memory for what a call points at. */
struct pointed {
	struct nfcomms_op ops[8];
	uint8_t out[CALL_MAX];
};

/* Let the addresses in a call's structure be those of operations, or of memory. */
static void point(void *to, const struct uapi_struct *u, const struct slot *s,
		  struct pointed *p, uint64_t *rng)
{
	for (size_t i = 0; i < u->fields; i++) {
		const struct uapi_field *f = &u->field[i];
		bool op = f->bytes == sizeof(*p->ops);

		if (f->kind != UAPI_KIND_ADDRESS)
			continue;
		for (size_t k = 0; op && k < COUNT(p->ops); k++)
			p->ops[k] = invent(s, rng);
		fill_field(to, f, (uintptr_t)(op ? (void *)p->ops : p->out));
	}
}

/* A call that was accepted may have taken operations. */
static void count_taken(struct slot *s, const struct nfcomms_submit *taken)
{
	note_ids(s, taken->first_id + taken->accepted);
	__atomic_fetch_add(&s->accepted, taken->accepted, __ATOMIC_RELAXED);
}

/*
 * A call of the interface, or a number that is none, with a structure that is filled
 * as it should be, or with any words. Not RESET, which ends all that others do. A
 * SETUP, after which completions have another size, gets a file of its own.
 */
static void do_any_call(struct slot *s, uint64_t *rng)
{
	const struct uapi_struct
		*u = &uapi_calls[next_random(rng) % COUNT(uapi_calls)];
	uint64_t words[CALL_MAX / 8] = { 0 };
	struct pointed pointed = { 0 };
	unsigned long nr = u->number;
	void *at = words;
	int fd = s->fd, error;

	point(words, u, s, &pointed, rng);
	fill(words, u, s, rng);
	if (next_random(rng) % 8 == 0)
		for (size_t i = 0; i < WORDS; i++)
			words[i] = next_random(rng) % 4 ? 0 : odd_value(rng);
	if (next_random(rng) % 8 == 0)
		nr = next_random(rng);
	if (next_random(rng) % 8 == 0)
		at = (void *)odd_value(rng);
	if (nr == NFCOMMS_IOC_RESET)
		nr = NFCOMMS_IOC_INFO;
	if (nr == NFCOMMS_IOC_SETUP)
		fd = open(node(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
	error = control(fd, nr, at);
	count(error);
	if (nr == NFCOMMS_IOC_SUBMIT && !error && at == words)
		count_taken(s, at);
	if (fd != s->fd)
		close(fd);
}

static void do_cancel(struct slot *s, uint64_t *rng)
{
	uint64_t last = __atomic_load_n(&s->ids, __ATOMIC_RELAXED);

	count(cancel(s->fd, last - next_random(rng) % RECENT));
}

/* Without signals: a slot that has no channels is of no use. */
static void do_reopen(struct slot *s, uint64_t *rng)
{
	sigset_t urgent;

	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	pthread_sigmask(SIG_BLOCK, &urgent, NULL);
	pthread_rwlock_wrlock(&s->lock);
	close(s->fd);
	memset(s->channel, 0, sizeof(s->channel));
	connect_slot(s, rng);
	pthread_rwlock_unlock(&s->lock);
	pthread_sigmask(SIG_UNBLOCK, &urgent, NULL);
}

static void do_memory(uint64_t *rng)
{
	size_t at = next_random(rng) % (MEMORY / 4096 - 8) * 4096;
	size_t size = (1 + next_random(rng) % 8) * 4096;
	pid_t pid;

	switch (next_random(rng) % 16) {
	case 0:
		pid = fork(); /* copy on write, for everything pinned */
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		break;
	case 1 ... 5:
		madvise(memory + at, size, MADV_DONTNEED);
		break;
	case 6 ... 8:
		mprotect(memory + at, size, PROT_READ);
		break;
	default:
		mprotect(memory + at, size, PROT_READ | PROT_WRITE);
	}
}

static void one_call(uint64_t *rng)
{
	struct slot *s = &slots[next_random(rng) % FILES];
	unsigned int what = next_random(rng) % 128;

	if (what == 0) {
		do_reopen(s, rng);
		return;
	}
	if (what < 7) {
		do_memory(rng);
		return;
	}
	pthread_rwlock_rdlock(&s->lock);
	if (what < 54)
		do_submit(s, rng);
	else if (what < 76)
		do_call(s, rng);
	else if (what < 97)
		do_read(s);
	else if (what < 116)
		do_cancel(s, rng);
	else
		do_any_call(s, rng);
	pthread_rwlock_unlock(&s->lock);
}

static void *fuzz(void *argument)
{
	uint64_t rng = *(uint64_t *)argument;

	while (__atomic_fetch_sub(&calls_left, 1, __ATOMIC_RELAXED) - 1 <
	       UINT64_MAX / 2) {
		one_call(&rng);
		__atomic_fetch_add(&calls_made, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Sleep until there were some calls, or there seem to be none. */
static void let_them_call(void)
{
	uint64_t before = calls_made;

	for (int ms = 0; ms < 10 && !over; ms++) {
		usleep(1000);
		if (__atomic_load_n(&calls_made, __ATOMIC_RELAXED) - before >=
		    CALLS_PER_SIGNAL)
			return;
	}
}

/*
 * A blocking call waits for a target: a signal ends it. A device that keeps the
 * rules is not lost, whatever it is asked; one that is ends everything.
 */
static void *interrupt(void *argument)
{
	int fd = client();

	for (unsigned int round = 0; !over; round++) {
		if (round % 256 == 0 && !CHECK_EQ(state(fd), NFCOMMS_STATE_READY))
			__atomic_store_n(&calls_left, 0, __ATOMIC_RELAXED);
		for (int i = 0; i < THREADS; i++)
			pthread_kill(threads[i], SIGURG);
		still_alive();
		progress(calls_made, calls_asked);
		let_them_call();
	}
	close(fd);
	return argument;
}

static void nothing(int sig)
{
	(void)sig;
}

/* Cancel all that is left: every accepted operation completes once. */
static void settle(struct slot *s)
{
	cancel_all(s->fd, 0, s->ids);
	for (uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	     s->completed < s->accepted && now_ns() < end;) {
		struct pollfd p = { .fd = s->fd, .events = POLLIN };

		poll(&p, 1, 10);
		if (p.revents & POLLIN)
			do_read(s);
	}
	CHECK_EQ(s->completed, s->accepted);
	close(s->fd);
}

static void print_tally(void)
{
	printf("%lu calls, %lu transfers reached DMA\n", (long)calls_made,
	       (long)reached_dma);
	for (int i = 0; i < ERRNO_COUNT; i++)
		if (tally[i])
			printf("  %-10s %lu\n", i ? strerrorname_np(i) : "ok",
			       (long)tally[i]);
}

CASE(ioctls_at_random)
{
	struct sigaction action = { .sa_handler = nothing };
	uint64_t seed = seed_for("fuzz"), seeds[THREADS];
	pthread_t signals;

	sigaction(SIGURG, &action, NULL);
	close(fresh());
	memory = pages(MEMORY, 1);
	descriptors[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	descriptors[1] = open("/dev/null", O_RDWR | O_CLOEXEC);
	descriptors[2] = client();
	calls_asked = test_argument ? strtoull(test_argument, NULL, 0) : CALLS;
	calls_left = calls_asked;
	for (int i = 0; i < FILES; i++) {
		pthread_rwlock_init(&slots[i].lock, NULL);
		connect_slot(&slots[i], &seed);
	}
	for (int i = 0; i < THREADS; i++) {
		seeds[i] = next_random(&seed);
		REQUIRE(!pthread_create(&threads[i], NULL, fuzz, &seeds[i]));
	}
	REQUIRE(!pthread_create(&signals, NULL, interrupt, NULL));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	over = true;
	pthread_join(signals, NULL);
	for (int i = 0; i < FILES; i++)
		settle(&slots[i]);
	for (int i = 0; i < DESCRIPTORS; i++)
		close(descriptors[i]);
	print_tally();
	free_pages(memory, MEMORY);
	check_pins();
	check_device();
}

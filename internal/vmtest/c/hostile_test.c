// SPDX-License-Identifier: MIT
/*
 * A device that lies, dies or hangs (nfsim --script). For each script, a call
 * ends in time with success or a typed error, success means the right bytes, no
 * byte outside a buffer changes, and every page is returned.
 *
 *	hostile [ROUNDS]
 *
 * NFC_CORRUPTS says that the device may spoil what it was given, NFC_EXPECT what
 * must show that the driver noticed: the counter "faults" or "dropped", "no
 * master", that it took the device's right to DMA away, or else what its log says.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	ROUNDS = 15,
	STEPS = 12, /* operations per round, if the device lives so long */
	SIZE = 40 * NFC_PAGE_SIZE,
	SMALL = 3 * NFC_PAGE_SIZE,
	GUARD = NFC_PAGE_SIZE,
	/* A watchdog: the escalation of a call, then the fence, are far below. */
	SLOWEST_MS = 30000,
};

static uint64_t ended[NFC_STATUS_COUNT], refused, slowest, resets;
static uint64_t unsuccessful; /* calls: refused, or ended otherwise than with NFC_OK */
static bool corrupts;
static uint8_t *buffer; /* guard, SIZE bytes, guard */

/* One operation: true if it took effect. */
static bool try_once(int fd, const struct nfcomms_op *op,
		     struct nfcomms_completion *c)
{
	uint64_t begun = now_ns(), ms;
	int error = call(fd, op, c);

	ms = (now_ns() - begun) / 1000000;
	if (ms > slowest)
		slowest = ms;
	if (error) {
		CHECK(error == EINTR || error == ENODEV || error == EHOSTDOWN ||
		      error == EINVAL || error == ENOENT || error == EIO);
		refused++;
		return false;
	}
	if (CHECK(c->status < NFC_STATUS_COUNT))
		ended[c->status]++;
	return c->status == NFC_OK;
}

static bool attempt(int fd, const struct nfcomms_op *op,
		    struct nfcomms_completion *c)
{
	bool ok = try_once(fd, op, c);

	unsuccessful += !ok;
	return ok;
}

static bool begin(int fd, uint32_t *channel)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_start request = {
		.request = NFCOMMS_CONTROL_START, .targets = 1
	};
	struct nfcomms_completion c;

	strcpy((char *)request.name, "loopback");
	memcpy(op.payload, &request, sizeof(request));
	if (!attempt(fd, &op, &c))
		return false;
	memcpy(&request, c.payload, sizeof(request));
	op = operation(NFCOMMS_OP_SUBSCRIBE, 0);
	op.target = request.first;
	if (request.status != NFC_OK || !attempt(fd, &op, &c))
		return false;
	*channel = c.channel;
	return true;
}

static void check_guards(void)
{
	for (int i = 0; i < GUARD; i++) {
		REQUIRE(buffer[i] == 0xa5);
		REQUIRE(buffer[GUARD + SIZE + i] == 0xa5);
	}
}

/* A transfer there and back, by lists or an eager one: equal if both say so. */
static bool bulk_echo(int fd, uint32_t ch, uint64_t seed)
{
	uint64_t size = seed % 2 ? SIZE : 1 + seed % SMALL;
	struct nfcomms_op out = transfer(NFCOMMS_OP_SEND_IND, ch,
					 buffer + GUARD, size);
	struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, ch,
					buffer + GUARD, size);
	struct nfcomms_completion c;

	for (uint64_t i = 0; i < size; i++)
		buffer[GUARD + i] = pattern(seed, i);
	if (!attempt(fd, &out, &c))
		return false;
	memset(buffer + GUARD, 0, size);
	if (!attempt(fd, &in, &c))
		return false;
	for (uint64_t i = 0; i < size && !corrupts; i++)
		if (buffer[GUARD + i] != pattern(seed, i))
			return CHECK(!"the bytes that were sent came back");
	return true;
}

static bool message_echo(int fd, uint32_t ch, uint64_t seed)
{
	struct nfcomms_op out = message(ch, &seed, sizeof(seed));
	struct nfcomms_op in = operation(NFCOMMS_OP_RECEIVE, ch);
	struct nfcomms_completion c;

	in.length = NFCOMMS_PAYLOAD_SIZE;
	if (!attempt(fd, &out, &c) || !attempt(fd, &in, &c))
		return false;
	CHECK(c.length <= NFCOMMS_PAYLOAD_SIZE);
	return true;
}

static void one_round(uint64_t *rng)
{
	struct nfcomms_reset reset = { .size = sizeof(reset) };
	uint32_t ch;
	int fd = client();

	if (control(fd, NFCOMMS_IOC_RESET, &reset)) {
		resets++; /* it is dead, or will not come back */
	} else if (begin(fd, &ch)) {
		for (int i = 0; i < STEPS; i++)
			if (!(i % 2 ? bulk_echo :
				      message_echo)(fd, ch, next_random(rng)))
				break;
	}
	check_guards();
	close(fd);
}

/*
 * A target may wait for ever for what its device swallowed: what takes long is
 * interrupted. The timer is that of alarm(2), so the harness watches no more;
 * who waits whatever happens is found by the limit of the program.
 */
static void give_up(int sig)
{
	(void)sig;
}

static void bound_calls(void)
{
	struct sigaction action = { .sa_handler = give_up };
	struct itimerval each = { { 0, 400000 }, { 0, 400000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

static void check_expected(const struct nfcomms_health *health, long rounds)
{
	const char *what = getenv("NFC_EXPECT");

	if (what && !strcmp(what, "faults")) {
		CHECK(health->faults > 0);
	} else if (what && !strcmp(what, "dropped")) {
		/* Most rounds lose an answer so; load ends a call now and then. */
		CHECK(health->dropped > 0);
		CHECK(unsuccessful >= (uint64_t)rounds / 2);
	} else if (what && !strcmp(what, "no master")) {
		CHECK(!is_master());
	} else if (what) {
		CHECK(health->faults > 0);
		CHECK(log_says(what));
	}
}

static void report(long rounds, const struct nfcomms_health *health)
{
	const char *script = getenv("NFC_SCRIPT");

	printf("%s: %ld rounds, slowest call %lu ms, %lu faults, %lu dropped, "
	       "%lu calls refused, %lu resets failed\n",
	       script ? script : "hostile", rounds, (long)slowest,
	       (long)health->faults, (long)health->dropped, (long)refused,
	       (long)resets);
	for (int i = 0; i < NFC_STATUS_COUNT; i++)
		if (ended[i])
			printf("  status %-3d %lu\n", i, (long)ended[i]);
}

CASE(a_hostile_device)
{
	long rounds = test_argument ? atol(test_argument) : ROUNDS;
	uint64_t rng = seed_for("hostile");
	struct nfcomms_health health = { .size = sizeof(health) };
	int fd;

	corrupts = getenv("NFC_CORRUPTS");
	bound_calls();
	buffer = pages(SIZE + 2 * GUARD, 0xa5);
	for (long i = 0; i < rounds && !test_failures(); i++) {
		progress(i, rounds);
		one_round(&rng);
	}
	fd = client();
	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &health), 0);
	close(fd);
	report(rounds, &health);
	CHECK(slowest < SLOWEST_MS);
	check_expected(&health, rounds);
	free_pages(buffer, SIZE + 2 * GUARD);
	check_pins();
}

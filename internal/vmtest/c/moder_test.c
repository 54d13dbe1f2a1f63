// SPDX-License-Identifier: MIT
/*
 * Adaptive moderation: the gap between a vector's interrupts follows its load,
 * within the limits of an administrator, and never costs a wake-up. The
 * device's own tests cover the effect on its registers.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../../../firmware/nfc_pci.h"
#include "../../../kmod/uapi/nfcomms_debug.h"
#include "bus.h"
#include "rig.h"

enum {
	MOST_US = 160, /* the hold-off that is allowed … */
	STEPS = 4, /* … and the times that it may be halved */
	LONE = 30,
	PAUSE_US = 12000, /* longer than any hold-off */
	ROUNDS = 60,
	TICK_MS = 200, /* less than the period of the driver's watch */
	MANY = 16, /* channels of a flood */
};

struct moder_bench {
	int fd, card;
	uint32_t vectors;
	struct nfcomms_op ops[MANY];
};

/* A client of a fresh device, whose registers may be read, with channels that take all. */
static struct moder_bench moder_setup(void)
{
	struct moder_bench b = { .fd = fresh(), .card = open_registers(O_RDWR) };
	struct nfcomms_info info = { .size = sizeof(info) };

	set_limit("register_access", "1");
	set_limit("holdoff", "160");
	set_limit("adaptive", "1");
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_INFO, &info), 0);
	b.vectors = info.vectors;
	for (int i = 0; i < MANY; i++)
		b.ops[i] = message(program(b.fd, "sink"), "x", 1);
	return b;
}

static void moder_end(const struct moder_bench *b)
{
	set_limit("holdoff", "50");
	set_limit("adaptive", "1");
	set_limit("register_access", "0");
	close(b->card);
	close(b->fd);
}

/* The hold-off that the device has for a vector. */
static uint32_t holdoff(const struct moder_bench *b, uint32_t vector)
{
	struct nfcomms_access a = { .size = sizeof(a),
				    .width = 4,
				    .offset = NFC_REG_VECTOR_HOLDOFF +
					      4 * vector };

	CHECK_EQ(control(b->card, NFCOMMS_IOC_ACCESS, &a), 0);
	return (uint32_t)a.value;
}

static uint64_t interrupts(int fd)
{
	struct nfcomms_health h = { .size = sizeof(h) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &h), 0);
	return h.interrupts;
}

/* Send a message on each of n channels at once. */
static void send_all(const struct moder_bench *b, unsigned int n)
{
	struct nfcomms_completion c;

	CHECK_EQ(submit(b->fd, b->ops, n), n);
	for (unsigned int i = 0; i < n; i++)
		REQUIRE(reap(b->fd, &c));
}

/* Many at once, then one by one: what a measurement brings differs each time. */
static void change_load(const struct moder_bench *b)
{
	for (int i = 0; i < 20; i++)
		send_all(b, MANY);
	for (int i = 0; i < 100; i++)
		send_all(b, 1);
}

/* One of the steps between the least and the most. */
static bool is_step(uint32_t us)
{
	for (uint32_t i = 0; i <= STEPS; i++)
		if (us == (uint32_t)MOST_US >> i)
			return true;
	return false;
}

/* Vector 0 brings no messages where there are others: it stays as it begins. */
CASE(the_holdoff_follows_the_load)
{
	struct moder_bench b = moder_setup();
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	uint32_t began[NFC_VECTORS_MAX], v;
	bool moved = false;

	REQUIRE(b.vectors > 1);
	CHECK_EQ(holdoff(&b, 0), MOST_US >> STEPS);
	for (v = 0; v < b.vectors; v++)
		began[v] = holdoff(&b, v);
	while (!moved && now_ns() < end && !test_failures()) {
		change_load(&b);
		for (v = 1; v < b.vectors; v++) {
			moved |= holdoff(&b, v) != began[v];
			CHECK(is_step(holdoff(&b, v)));
		}
	}
	CHECK(moved);
	CHECK_EQ(holdoff(&b, 0), MOST_US >> STEPS);
	moder_end(&b);
}

CASE(it_is_fixed_where_it_does_not_adapt)
{
	struct moder_bench b = moder_setup();
	uint32_t v;

	set_limit("adaptive", "0");
	for (v = 0; v < b.vectors; v++)
		CHECK_EQ(holdoff(&b, v), MOST_US);
	change_load(&b);
	set_limit("holdoff", "80");
	for (v = 0; v < b.vectors; v++)
		CHECK_EQ(holdoff(&b, v), 80);
	CHECK_EQ(reset(b.fd, (struct nfcomms_reset){ 0 }), 0);
	for (v = 0; v < b.vectors; v++)
		CHECK_EQ(holdoff(&b, v), 80);
	moder_end(&b);
}

/*
 * With the longest hold-off, after a flood: who sends after a pause is interrupted
 * for at once. An answer that comes while the sender still runs needs no interrupt.
 */
CASE(a_lone_message_is_not_held)
{
	struct moder_bench b = moder_setup();
	uint64_t before;

	set_limit("holdoff", "10000");
	change_load(&b);
	before = interrupts(b.fd);
	for (int i = 0; i < LONE; i++) {
		usleep(PAUSE_US);
		send_all(&b, 1);
	}
	printf("%llu interrupts for %d messages\n",
	       (unsigned long long)(interrupts(b.fd) - before), LONE);
	CHECK(interrupts(b.fd) - before >= LONE / 2);
	moder_end(&b);
}

static _Atomic bool over;

static void *change_limits(void *unused)
{
	while (!over) {
		set_limit("holdoff", "10000");
		set_limit("adaptive", "0");
		usleep(500);
		set_limit("adaptive", "1");
		set_limit("holdoff", "0");
	}
	return unused;
}

/*
 * A thread that sleeps while the hold-off changes is woken, and not by the
 * watch.
 */
CASE(no_wake_up_is_lost_when_it_changes)
{
	struct moder_bench b = moder_setup();
	pthread_t thread;
	int late = 0;

	over = false;
	REQUIRE(!pthread_create(&thread, NULL, change_limits, NULL));
	for (int i = 0; i < ROUNDS && !test_failures(); i++) {
		uint64_t begun = now_ns();

		send_all(&b, 1 + i % MANY);
		late += (now_ns() - begun) / 1000000 >= TICK_MS;
	}
	over = true;
	pthread_join(thread, NULL);
	printf("%d of %d waits took a tick\n", late, ROUNDS);
	CHECK(late < ROUNDS / 2);
	moder_end(&b);
}

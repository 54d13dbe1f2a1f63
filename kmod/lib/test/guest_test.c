// SPDX-License-Identifier: MIT
/*
 * The library on a device, $NFC_NODE or dev:0: cases that are the same on every
 * address.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../../firmware/test/harness.h"
#include "../libnfcomms.h"

enum {
	LOOPBACK = 1, /* the service */
	PATIENCE_MS = 60000,
};

static struct nfcomms_dev *opened(void)
{
	const char *node = getenv("NFC_NODE");
	struct nfcomms_dev *dev = NULL;

	CHECK_EQ(nfcomms_open(node ? node : "dev:0", &dev), 0);
	return dev;
}

/* The channel to port 0 of a process that runs a program; 0 if that fails. */
static uint32_t run(struct nfcomms_dev *dev, const char *program,
		    struct nfcomms_process *process)
{
	uint32_t channel = 0;

	CHECK_EQ(nfcomms_start(dev, program, 0, 1, 0, process), 0);
	CHECK_EQ(nfcomms_subscribe(dev, process->first, &channel), 0);
	return channel;
}

/* Wait for one event. */
static struct nfcomms_event event(struct nfcomms_dev *dev)
{
	struct pollfd p = { .fd = nfcomms_fd(dev), .events = POLLIN };
	struct nfcomms_event e = { .result = -1 };

	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	CHECK_EQ(nfcomms_events(dev, &e, 1), 1);
	return e;
}

CASE(describes)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_description d;
	struct nfcomms_heartbeat h;
	char name[NFCOMMS_NAME_SIZE];
	uint32_t i;
	int rc;

	REQUIRE(dev);
	CHECK_EQ(nfcomms_describe(dev, &d), 0);
	CHECK(d.channels && d.mailboxes && d.window && d.contexts &&
	      d.max_operations && d.driver[0]);
	CHECK_EQ(nfcomms_health(dev, &h), 0);
	for (i = 0; !(rc = nfcomms_program(dev, i, name)); i++)
		CHECK(name[0]);
	CHECK_EQ(rc, -ENOENT);
	CHECK(i > 3);
	nfcomms_close(dev);
}

CASE(echoes_messages)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_process p;
	uint32_t channel;
	char in[56], out[56];
	int n;

	REQUIRE(dev);
	channel = run(dev, "loopback", &p);
	for (n = 0; n <= 56; n++) {
		memset(out, n, sizeof(out));
		CHECK_EQ(nfcomms_send(dev, channel, out, (size_t)n), 0);
		CHECK_EQ(nfcomms_receive(dev, channel, in, sizeof(in)), n);
		CHECK(!memcmp(in, out, (size_t)n));
	}
	CHECK_EQ(nfcomms_try_receive(dev, channel, in, 56), -EAGAIN);
	for (n = 0; n <= 56; n++)
		CHECK_EQ(nfcomms_call(dev, channel, out, (size_t)n, in, 56), n);
	CHECK(!memcmp(in, out, 56));
	CHECK_EQ(nfcomms_call(dev, channel, out, 12, in, 11), -E2BIG);
	CHECK_EQ(nfcomms_try_receive(dev, channel, in, 56), -EAGAIN);
	CHECK_EQ(nfcomms_send(dev, channel, out, 12), 0);
	CHECK_EQ(nfcomms_receive(dev, channel, in, 11), -E2BIG);
	CHECK_EQ(nfcomms_receive(dev, channel, in, 12), 12);
	CHECK_EQ(nfcomms_stop(dev, p.id), 0);
	CHECK_EQ(nfcomms_stop(dev, p.id), -EINVAL);
	CHECK_EQ(nfcomms_send(dev, channel, out, 1), -EPIPE);
	CHECK_EQ(nfcomms_unsubscribe(dev, channel, 3), 0);
	CHECK_EQ(nfcomms_unsubscribe(dev, channel, 3), 0);
	CHECK_EQ(nfcomms_send(dev, channel, out, 1), -ENOENT);
	nfcomms_close(dev);
}

CASE(echoes_transfers)
{
	static const size_t sizes[] = { 0, 1, 4095, 4097, 24577, 1000003 };
	struct nfcomms_dev *dev = opened();
	struct nfcomms_failure why;
	struct nfcomms_process p;
	struct nfcomms_offer offer;
	unsigned char *out, *in;
	uint32_t channel;
	size_t i, j;

	REQUIRE(dev);
	channel = run(dev, "loopback", &p);
	out = malloc(1 << 20);
	in = malloc(1 << 20);
	REQUIRE(out && in);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (j = 0; j < sizes[i]; j++)
			out[j + 3] = (unsigned char)(j * 7 + i);
		CHECK_EQ(nfcomms_send_ind(dev, channel, out + 3, sizes[i], &why),
			 0);
		CHECK_EQ(nfcomms_next(dev, channel, &offer), 0);
		CHECK(offer.indirect == 1 && offer.size == sizes[i]);
		CHECK_EQ(nfcomms_receive_ind(dev, channel, in + 1, sizes[i],
					     &why),
			 0);
		CHECK(!memcmp(in + 1, out + 3, sizes[i]));
	}
	CHECK_EQ(nfcomms_send_ind(dev, channel, out, 100, &why), 0);
	CHECK_EQ(nfcomms_receive_ind(dev, channel, in, 99, &why), -EMSGSIZE);
	CHECK_EQ(why.peer_size, 100);
	free(in);
	free(out);
	nfcomms_close(dev);
}

CASE(refuses_memory)
{
	struct nfcomms_dev *dev = opened();
	struct nfcomms_process p;
	uint32_t channel;
	void *page;

	REQUIRE(dev);
	channel = run(dev, "sink", &p);
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(page != MAP_FAILED);
	CHECK_EQ(nfcomms_send_ind(dev, channel, page, 4096, NULL), -EFAULT);
	CHECK_EQ(nfcomms_send_ind(dev, channel, NULL, 10, NULL), -EFAULT);
	CHECK_EQ(nfcomms_send(dev, channel, "well", 4), 0);
	munmap(page, 4096);
	nfcomms_close(dev);
}

/* The same bytes, from inside regions, at their edges and beside them. */
CASE(registered_memory)
{
	enum { SIZE = 100000 };
	struct nfcomms_dev *dev = opened();
	unsigned char *p = malloc(SIZE), *q = malloc(SIZE);
	struct nfcomms_request hold = { .kind = NFCOMMS_SEND_IND, .size = 10 };
	struct nfcomms_process loop, held;
	uint64_t id = 0;
	uint32_t channel, from = 0, to = 0, none;

	REQUIRE(dev && p && q);
	channel = run(dev, "loopback", &loop);
	CHECK_EQ(nfcomms_register(dev, p, SIZE, &from), 0);
	CHECK_EQ(nfcomms_register(dev, q, SIZE, &to), 0);
	CHECK_EQ(nfcomms_register(dev, q, 0, &none), -EINVAL);
	CHECK_EQ(nfcomms_register(dev, NULL, 10, &none), -EFAULT);
	CHECK(nfcomms_import(dev, 0, 1, 4096, &none) < 0); /* no dma-buf */
	for (size_t at = 9; at < 13; at++) {
		memset(p, (int)at, SIZE);
		memset(q, 0, SIZE);
		CHECK_EQ(nfcomms_send_region(dev, channel, from, at, SIZE - 22,
					     NULL),
			 0);
		CHECK_EQ(nfcomms_receive_region(dev, channel, to, at, SIZE - 22,
						NULL),
			 0);
		CHECK(!memcmp(p + at, q + at, SIZE - 22));
	}
	CHECK_EQ(nfcomms_send_region(dev, channel, from, 1, SIZE, NULL),
		 -ERANGE);
	hold.channel = run(dev, "hold", &held);
	hold.region = from;
	hold.offset = 10;
	CHECK_EQ(nfcomms_submit(dev, &hold, 1, &id), 1);
	CHECK_EQ(nfcomms_unregister(dev, from), -EBUSY);
	CHECK_EQ(nfcomms_cancel(dev, id), 0);
	CHECK_EQ(event(dev).result, -ECANCELED);
	CHECK_EQ(nfcomms_unregister(dev, from), 0);
	CHECK_EQ(nfcomms_unregister(dev, from), -ENOENT);
	nfcomms_close(dev);
	free(p);
	free(q);
}

static void noted(int sig)
{
	(void)sig;
}

/* A signal each so often; 0: none. One that arrives before the call waits ends nothing. */
static void signal_each(timer_t timer, long ns)
{
	const struct itimerspec each = { { 0, ns }, { 0, ns } };

	CHECK_EQ(timer_settime(timer, 0, &each, NULL), 0);
}

/* A signal that is handled ends a call, whatever its handler asked for. */
CASE(a_signal_takes_back)
{
	static const int flags[] = { 0, SA_RESTART, SA_ONSTACK };
	struct sigevent user = { .sigev_signo = SIGUSR1 };
	const long often = 20000000;
	struct nfcomms_dev *dev = opened();
	char in[8], data[10000] = { 1 };
	struct nfcomms_process p;
	uint32_t channel;
	timer_t timer;
	size_t i;

	REQUIRE(dev && !timer_create(CLOCK_MONOTONIC, &user, &timer));
	channel = run(dev, "hold", &p);
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct sigaction action = { .sa_handler = noted,
					    .sa_flags = flags[i] };

		sigaction(SIGUSR1, &action, NULL);
		signal_each(timer, often);
		CHECK_EQ(nfcomms_send(dev, channel, "nobody reads", 12), -EINTR);
		signal_each(timer, 0);
		CHECK_EQ(nfcomms_try_send(dev, channel, "x", 1), -EAGAIN);
		signal_each(timer, often);
		CHECK_EQ(nfcomms_receive(dev, channel, in, sizeof(in)), -EINTR);
		CHECK_EQ(nfcomms_send_ind(dev, channel, data, sizeof(data), NULL),
			 -EINTR);
		signal_each(timer, 0);
	}
	timer_delete(timer);
	nfcomms_close(dev);
}

/* A thread that uses a channel beside the others. */
struct user {
	struct nfcomms_dev *dev;
	uint32_t channel;
	int rounds, result;
	pthread_t thread;
};

static void *sends(void *at)
{
	struct user *u = at;
	int i;

	for (i = 0; i < u->rounds && !u->result; i++)
		u->result = nfcomms_send(u->dev, u->channel, &i, sizeof(i));
	return NULL;
}

static void *receives(void *at)
{
	struct user *u = at;
	char in[8];

	do { /* the other thread's tries are receives as well */
		u->result = nfcomms_receive(u->dev, u->channel, in, sizeof(in));
	} while (u->result == -EBUSY);
	return NULL;
}

CASE(threads_share_a_half)
{
	enum { SENDERS = 3, ROUNDS = 200 };
	struct nfcomms_dev *dev = opened();
	struct user u[SENDERS] = { 0 };
	int i, value, sum = 0;
	struct nfcomms_process p;
	uint32_t channel;

	REQUIRE(dev);
	channel = run(dev, "loopback", &p);
	for (i = 0; i < SENDERS; i++) {
		u[i] = (struct user){ dev, channel, ROUNDS, 0, 0 };
		pthread_create(&u[i].thread, NULL, sends, &u[i]);
	}
	for (i = 0; i < SENDERS * ROUNDS; i++) {
		CHECK_EQ(nfcomms_receive(dev, channel, &value, 4), 4);
		sum += value;
	}
	CHECK_EQ(sum, SENDERS * ROUNDS * (ROUNDS - 1) / 2);
	for (i = 0; i < SENDERS; i++) {
		pthread_join(u[i].thread, NULL);
		CHECK_EQ(u[i].result, 0);
	}
	u[0].rounds = 0;
	pthread_create(&u[0].thread, NULL, receives, &u[0]);
	while ((value = nfcomms_try_receive(dev, channel, &i, 4)) == -EAGAIN)
		sched_yield();
	CHECK_EQ(value, -EBUSY); /* one receives */
	CHECK_EQ(nfcomms_unsubscribe(dev, channel, NFCOMMS_RECEIVING), 0);
	pthread_join(u[0].thread, NULL);
	CHECK_EQ(u[0].result, -EPIPE);
	nfcomms_close(dev);
}

CASE(events_and_cancels)
{
	struct nfcomms_dev *dev = opened();
	char data[10000] = { 1 };
	struct nfcomms_process p;
	struct nfcomms_event e;
	uint32_t held, echo;
	struct nfcomms_description about;
	struct nfcomms_request r[4];
	uint64_t ids[2];

	REQUIRE(dev);
	CHECK_EQ(nfcomms_describe(dev, &about), 0);
	CHECK_EQ(nfcomms_events(dev, &e, 1), 0);
	held = run(dev, "hold", &p);
	echo = run(dev, "loopback", &p);
	r[0] = (struct nfcomms_request){ NFCOMMS_SEND_IND, held, 1, data,
					 sizeof(data),	   0,	 0, 0 };
	r[1] = (struct nfcomms_request){
		NFCOMMS_SEND, echo, 2, "async", 5, 0, 0, 0
	};
	CHECK_EQ(nfcomms_submit(dev, r, 2, ids), 2);
	CHECK_EQ(ids[1], ids[0] + 1);
	e = event(dev);
	CHECK(e.id == ids[1] && e.epoch == about.epoch);
	CHECK(e.token == 2 && e.kind == NFCOMMS_SEND && !e.result);
	r[0] = (struct nfcomms_request){ NFCOMMS_NEXT, echo, 3, NULL, 0, 0, 0, 0 };
	CHECK_EQ(nfcomms_submit(dev, r, 1, NULL), 1);
	e = event(dev);
	CHECK(e.token == 3 && e.kind == NFCOMMS_NEXT && e.size == 5 &&
	      !e.indirect);
	r[0] = (struct nfcomms_request){
		NFCOMMS_RECEIVE, echo, 4, NULL, 0, 0, 0, 0
	};
	CHECK_EQ(nfcomms_submit(dev, r, 1, NULL), 1);
	e = event(dev);
	CHECK(e.token == 4 && !e.result && e.size == 5 &&
	      !memcmp(e.message, "async", 5));
	CHECK_EQ(nfcomms_cancel(dev, ids[0]), 0);
	e = event(dev);
	CHECK(e.token == 1 && e.kind == NFCOMMS_SEND_IND &&
	      e.result == -ECANCELED && e.channel == held);
	CHECK_EQ(nfcomms_cancel(dev, ids[0]), -ENOENT);
	r[0] = (struct nfcomms_request){
		NFCOMMS_CLOSE, echo, 5, NULL, 3, 0, 0, 0
	};
	CHECK_EQ(nfcomms_submit(dev, r, 1, NULL), 1);
	e = event(dev);
	CHECK(e.token == 5 && e.kind == NFCOMMS_CLOSE && !e.result);
	CHECK_EQ(nfcomms_submit(dev, r, 1, NULL), -ENOENT);
	nfcomms_close(dev);
}

CASE(a_reset_ends_channels)
{
	struct nfcomms_dev *dev = opened();
	uint32_t channel = 0;

	REQUIRE(dev);
	CHECK_EQ(nfcomms_subscribe(dev, LOOPBACK, &channel), 0);
	CHECK_EQ(nfcomms_send(dev, channel, "x", 1), 0);
	CHECK_EQ(nfcomms_reset(dev), 0);
	CHECK_EQ(nfcomms_send(dev, channel, "x", 1), -ENODEV);
	CHECK_EQ(nfcomms_subscribe(dev, LOOPBACK, &channel), 0);
	CHECK_EQ(nfcomms_send(dev, channel, "x", 1), 0);
	nfcomms_close(dev);
}

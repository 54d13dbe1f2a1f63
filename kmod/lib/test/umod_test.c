// SPDX-License-Identifier: MIT
/* Devices without the kernel module, in their differences; $NFC_NODE is one. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../firmware/test/harness.h"
#include "../libnfcomms.h"

static struct nfcomms_dev *opened(void)
{
	struct nfcomms_dev *dev = NULL;

	CHECK_EQ(nfcomms_open(getenv("NFC_NODE"), &dev), 0);
	return dev;
}

static uint32_t run(struct nfcomms_dev *dev, const char *program)
{
	struct nfcomms_process p;
	uint32_t channel = 0;

	CHECK_EQ(nfcomms_start(dev, program, 0, 1, 0, &p), 0);
	CHECK_EQ(nfcomms_subscribe(dev, p.first, &channel), 0);
	return channel;
}

/* A socket with a name that nobody listens on. */
static void deaf_socket(char *path, size_t size)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(path, size, "/tmp/nfcomms-deaf-%d", getpid());
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	CHECK_EQ(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
}

CASE(bad_addresses)
{
	static const struct {
		const char *address;
		int want;
	} bad[] = {
		{ "nothing:", -EINVAL },
		{ "shm:", -EINVAL },
		{ "sim:?bogus=1", -EINVAL },
		{ "sim:?islands=no", -EINVAL },
		{ "sim:?islands=1&islands=2", -EINVAL },
		{ "shm:/nowhere/nfcomms.sock", -ENOENT },
		{ "shm:/etc/passwd", -EINVAL }, /* no socket */
	};
	char path[64], address[80];
	struct nfcomms_dev *dev = NULL;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(nfcomms_open(bad[i].address, &dev), bad[i].want);
	deaf_socket(path, sizeof(path));
	snprintf(address, sizeof(address), "shm:%s", path);
	CHECK_EQ(nfcomms_open(address, &dev), -ECONNREFUSED);
	unlink(path);
	CHECK(!dev);
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A device that is closed while operations wait leaves no descriptor. */
CASE(close_leaves_nothing)
{
	char data[10000] = { 1 };
	struct nfcomms_request r[3];
	struct nfcomms_dev *dev;
	int i, before = 0;
	uint32_t held;

	for (i = 0; i < 10; i++) {
		dev = opened();
		REQUIRE(dev);
		held = run(dev, "hold");
		r[0] = (struct nfcomms_request){
			NFCOMMS_SEND_IND, held, 1, data, sizeof(data), 0, 0, 0
		};
		r[1] = (struct nfcomms_request){
			NFCOMMS_SEND, held, 2, data, 5, 0, 0, 0
		};
		r[2] = (struct nfcomms_request){
			NFCOMMS_RECEIVE, held, 3, NULL, 0, 0, 0, 0
		};
		CHECK_EQ(nfcomms_submit(dev, r, 3, NULL), 3);
		nfcomms_close(dev);
		if (i == 1) /* the first ones make what Go keeps */
			before = descriptors();
	}
	CHECK_EQ(descriptors(), before);
}

/* The child of a fork has devices of no use, and its parent continues. */
CASE(a_fork)
{
	struct nfcomms_dev *dev = opened(), *other = NULL;
	struct nfcomms_description d;
	struct nfcomms_event e;
	int status = 0, ok;
	uint32_t channel;
	pid_t child;

	REQUIRE(dev);
	channel = run(dev, "loopback");
	child = fork();
	if (!child) {
		ok = nfcomms_send(dev, channel, "x", 1) == -ENODEV &&
		     nfcomms_describe(dev, &d) == -ENODEV &&
		     nfcomms_events(dev, &e, 1) == -ENODEV &&
		     nfcomms_open("sim:", &other) == -EOPNOTSUPP && !other;
		nfcomms_close(dev);
		_exit(ok ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK_EQ(nfcomms_send(dev, channel, "x", 1), 0);
	nfcomms_close(dev);
}

enum { TICKS = 500 };
static volatile sig_atomic_t ticks, strays;
static uintptr_t stack_top;
static timer_t timer;

/*
 * Counts the times it does not run on the stack of main. The last one lets a call end,
 * which may take longer here than the time between two.
 */
static void noted(int sig)
{
	const struct itimerspec never = { 0 };
	volatile int here = sig;
	uintptr_t at = (uintptr_t)&here;

	if (++ticks == TICKS)
		timer_settime(timer, 0, &never, NULL);
	if (at > stack_top || stack_top - at > 1 << 20)
		strays++;
}

/* Send SIGUSR1 all the time, but no more once ticks is TICKS. */
static bool tick(void)
{
	const struct itimerspec often = { { 0, 300000 }, { 0, 300000 } };
	struct sigevent user = { .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_handler = noted };

	sigaction(SIGUSR1, &action, NULL);
	return !timer_create(CLOCK_MONOTONIC, &user, &timer) &&
	       !timer_settime(timer, 0, &often, NULL);
}

/*
 * Signals at any time: no handler runs on the small stacks of Go, on whichever
 * thread.
 */
CASE(many_signals)
{
	struct nfcomms_dev *dev = opened();
	uint32_t channel;
	int rc, i = 0, back;

	stack_top = (uintptr_t)__builtin_frame_address(0);
	REQUIRE(dev);
	channel = run(dev, "loopback");
	REQUIRE(tick());
	while (ticks < TICKS) {
		while ((rc = nfcomms_send(dev, channel, &i, 4)) == -EINTR)
			;
		CHECK_EQ(rc, 0);
		while ((rc = nfcomms_receive(dev, channel, &back, 4)) == -EINTR)
			;
		CHECK_EQ(rc, 4);
		CHECK_EQ(back, i);
		do
			rc = nfcomms_call(dev, channel, &i, 4, &back, 4);
		while (rc == -EINTR || rc == -ENODATA);
		CHECK_EQ(rc, 4); /* no answer is that to a call before */
		CHECK_EQ(back, i);
		i++;
	}
	timer_delete(timer);
	CHECK_EQ(strays, 0);
	nfcomms_close(dev);
}

/* Signals that a program put into the mask of its thread stay there. */
CASE(mask_stays)
{
	struct nfcomms_dev *dev;
	sigset_t before, after;

	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	dev = opened();
	REQUIRE(dev);
	CHECK_EQ(nfcomms_try_send(dev, run(dev, "hold"), "x", 1), -EAGAIN);
	nfcomms_close(dev);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	CHECK(sigismember(&after, SIGUSR2) && !sigismember(&after, SIGUSR1) &&
	      !sigismember(&after, SIGINT));
}

/* Two hosts of a device with a channel between them; on "sim:" one host has both ends. */
struct hosts {
	struct nfcomms_dev *dialer, *listener;
	uint32_t listens, near, far;
};

static void meet(struct hosts *h)
{
	bool alone = !strncmp(getenv("NFC_NODE"), "sim:", 4);

	h->listener = opened();
	h->dialer = alone ? h->listener : opened();
	CHECK_EQ(nfcomms_dial(h->dialer, "gifts", &h->near), -ENXIO);
	CHECK_EQ(nfcomms_listen(h->listener, "gifts", &h->listens), 0);
	CHECK_EQ(nfcomms_dial(h->dialer, "gifts", &h->near), 0);
	CHECK_EQ(nfcomms_accept(h->listener, h->listens, &h->far), 0);
}

static void part(struct hosts *h)
{
	if (h->dialer != h->listener)
		nfcomms_close(h->dialer);
	nfcomms_close(h->listener);
}

struct gift {
	struct nfcomms_dev *dev;
	uint32_t channel, region;
	int rc;
};

static void *give(void *of)
{
	struct gift *g = of;

	g->rc = nfcomms_give(g->dev, g->channel, g->region);
	return NULL;
}

/* Memory goes there and back, and a word of each host with it. */
CASE(gifts)
{
	struct nfcomms_memory here, there;
	struct hosts h = { 0 };
	uint64_t i;

	meet(&h);
	CHECK_EQ(nfcomms_alloc(h.dialer, 1 << 20, &here), 0);
	REQUIRE(here.data && here.size == 1 << 20);
	for (i = 0; i < 20; i++) {
		struct gift out = { h.dialer, h.near, here.region, -1 }, back;
		uint64_t *old = here.data;
		pthread_t giver;

		old[1000] = i;
		pthread_create(&giver, NULL, give, &out);
		CHECK_EQ(nfcomms_take(h.listener, h.far, &there), 0);
		pthread_join(giver, NULL);
		CHECK_EQ(out.rc, 0);
		CHECK_EQ(there.size, 1 << 20);
		CHECK_EQ(nfcomms_give(h.dialer, h.near, here.region), -ENOENT);
		if (h.dialer != h.listener)
			CHECK_EQ(nfcomms_send_ind(h.dialer, h.near, old, 8, NULL),
				 -EREMOTE);
		CHECK_EQ(((uint64_t *)there.data)[1000]++, i);
		back = (struct gift){ h.listener, h.far, there.region, -1 };
		pthread_create(&giver, NULL, give, &back);
		CHECK_EQ(nfcomms_take(h.dialer, h.near, &here), 0);
		pthread_join(giver, NULL);
		CHECK_EQ(back.rc, 0);
		CHECK_EQ(((uint64_t *)here.data)[1000], i + 1);
	}
	CHECK_EQ(nfcomms_unregister(h.dialer, here.region), 0);
	CHECK_EQ(nfcomms_unregister(h.dialer, here.region), -ENOENT);
	part(&h);
}

/* Each bad call has one error, and what was to be given stays. */
CASE(gifts_that_are_refused)
{
	struct nfcomms_memory mine, none;
	struct hosts h = { 0 };
	uint32_t own, loop, other;
	char bytes[64], long_name[100];
	struct gift sent;
	pthread_t giver;

	meet(&h);
	CHECK_EQ(nfcomms_alloc(h.dialer, 100, &mine), 0);
	CHECK_EQ(nfcomms_alloc(h.dialer, 0, &none), -EINVAL);
	CHECK_EQ(nfcomms_alloc(h.dialer, UINT64_MAX, &none), -EINVAL);
	CHECK_EQ(nfcomms_alloc(h.dialer, 1, NULL), -EINVAL);
	CHECK_EQ(nfcomms_take(h.dialer, h.near, NULL), -EINVAL);
	CHECK_EQ(nfcomms_take(h.dialer, 9999, &none), -ENOENT);
	CHECK_EQ(nfcomms_give(h.dialer, 9999, mine.region), -ENOENT);
	CHECK_EQ(nfcomms_give(h.dialer, h.near, 9999), -ENOENT);
	CHECK_EQ(nfcomms_register(h.dialer, bytes, sizeof(bytes), &own), 0);
	CHECK_EQ(nfcomms_give(h.dialer, h.near, own), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_subscribe(h.dialer, 1, &loop), 0);
	CHECK_EQ(nfcomms_give(h.dialer, loop, mine.region), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_take(h.dialer, loop, &none), -EOPNOTSUPP);
	CHECK_EQ(nfcomms_listen(h.listener, "gifts", &other), -EBUSY);
	CHECK_EQ(nfcomms_listen(h.listener, NULL, &other), -EINVAL);
	CHECK_EQ(nfcomms_listen(h.listener, "no name", &other), -EINVAL);
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	CHECK_EQ(nfcomms_listen(h.listener, long_name, &other), -EINVAL);
	CHECK_EQ(nfcomms_accept(h.listener, 9999, &other), -ENOENT);

	sent = (struct gift){ h.dialer, h.near, mine.region, -1 };
	pthread_create(&giver, NULL, give, &sent);
	CHECK_EQ(nfcomms_receive(h.listener, h.far, bytes, sizeof(bytes)), 56);
	pthread_join(giver, NULL);
	CHECK_EQ(sent.rc, -EPROTOTYPE);
	CHECK_EQ(nfcomms_unsubscribe(h.listener, h.far, 3), 0);
	CHECK_EQ(nfcomms_give(h.dialer, h.near, mine.region), -EPIPE);
	CHECK_EQ(nfcomms_unlisten(h.listener, h.listens), 0);
	CHECK_EQ(nfcomms_unlisten(h.listener, h.listens), -ENOENT);
	memset(mine.data, 1, mine.size); /* still here */
	CHECK_EQ(nfcomms_unregister(h.dialer, mine.region), 0);
	part(&h);
}

/* A signal ends each call that waits, and memory stays. */
CASE(gifts_that_are_interrupted)
{
	struct nfcomms_memory mine, none;
	struct hosts h = { 0 };
	uint32_t other;

	meet(&h);
	CHECK_EQ(nfcomms_alloc(h.dialer, 100, &mine), 0);
	ticks = TICKS; /* the signals go on, however late a call waits */
	REQUIRE(tick());
	CHECK_EQ(nfcomms_accept(h.listener, h.listens, &other), -EINTR);
	CHECK_EQ(nfcomms_take(h.listener, h.far, &none), -EINTR);
	CHECK_EQ(nfcomms_give(h.dialer, h.near, mine.region), -EINTR);
	timer_delete(timer);
	memset(mine.data, 1, mine.size);
	CHECK_EQ(nfcomms_unregister(h.dialer, mine.region), 0);
	part(&h);
}

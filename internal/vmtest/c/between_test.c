// SPDX-License-Identifier: MIT
/*
 * Between epochs: the device has one epoch, also after resets at the same time.
 * One that could not boot does no DMA. A completion that a read had to put back
 * is read by another, also when the device is removed by then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bus.h"
#include "lazy.h"
#include "rig.h"

enum {
	ROUNDS = 4,
	PAGE = NFC_PAGE_SIZE,
};

static const struct nfcomms_reset any_shape;

/* The bus resets the function, as an administrator or another driver has it. */
struct bus_reset {
	pthread_t thread;
	char path[PATH_MAX + 8];
	int error;
	volatile bool over;
};

static void *reset_function(void *argument)
{
	struct bus_reset *r = argument;

	r->error = try_put(r->path, "1");
	r->over = true;
	return NULL;
}

static void begin_bus_reset(struct bus_reset *r, const char *device)
{
	*r = (struct bus_reset){ .over = false };
	snprintf(r->path, sizeof(r->path), "%s/reset", device);
	CHECK(!pthread_create(&r->thread, NULL, reset_function, r));
}

static void end_bus_reset(struct bus_reset *r)
{
	pthread_join(r->thread, NULL);
	CHECK_EQ(r->error, 0);
}

/* While the bus has the function nobody boots it: that would be a second epoch. */
CASE(resets_of_the_function_and_of_the_device)
{
	char device[PATH_MAX];
	int fd = fresh(), busy = 0;
	struct bus_reset r;

	find_device(device);
	for (int i = 0; i < ROUNDS && !test_failures(); i++) {
		begin_bus_reset(&r, device);
		while (!r.over) {
			int error = reset(fd, any_shape);

			CHECK(error == 0 || error == EBUSY);
			busy += error == EBUSY;
		}
		end_bus_reset(&r);
		check_device();
	}
	CHECK(busy > 0);
	unbind(device); /* an epoch too many would read registers that are gone */
	close(fd);
	bind_to(device);
	await_node();
	check_device();
	check_pins();
}

CASE(a_boot_that_fails_leaves_no_dma)
{
	struct nfcomms_reset huge = {
		.channels = NFC_CHANNELS_MAX,
		.mailboxes = NFC_MAILBOXES_MAX,
		.slots = NFC_SLOTS_MAX,
	};
	int fd = fresh();

	CHECK(is_master());
	CHECK(reset(fd, huge) != 0);
	CHECK_EQ(state(fd), NFCOMMS_STATE_LOST);
	CHECK(!is_master());
	CHECK_EQ(reset(fd, any_shape), 0);
	CHECK(is_master());
	close(fd);
	check_device();
}

/* A thread that reads one completion. */
struct reader {
	pthread_t thread;
	pid_t id;
	int fd;
	void *to;
	ssize_t n;
	int error;
};

static void *read_one(void *argument)
{
	struct reader *r = argument;

	__atomic_store_n(&r->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	r->n = read(r->fd, r->to, sizeof(struct nfcomms_completion));
	r->error = r->n < 0 ? errno : 0;
	return NULL;
}

static void begin_reading(struct reader *r, int fd, void *to)
{
	*r = (struct reader){ .fd = fd, .to = to };
	CHECK(!pthread_create(&r->thread, NULL, read_one, r));
}

/* It sleeps. */
static void await_sleep(const struct reader *r)
{
	char path[64], line[256], state = 0;
	FILE *f;

	while (!__atomic_load_n(&r->id, __ATOMIC_ACQUIRE))
		;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", r->id);
	while (state != 'S' && !test_failures()) {
		f = fopen(path, "r");
		if (CHECK(f && fgets(line, sizeof(line), f)))
			state = strrchr(line, ')')[2];
		if (f)
			fclose(f);
	}
}

/* A file whose only completion a reader has, whose buffer does not come. */
struct put_back {
	int fd;
	struct lazy buffer;
	struct reader first, second;
	struct nfcomms_completion c;
};

static void begin_put_back(struct put_back *b)
{
	struct pollfd p = { .events = POLLIN };
	struct nfcomms_op op;

	b->buffer = lazy_pages(PAGE, 0);
	b->fd = fresh();
	fcntl(b->fd, F_SETFL, 0); /* reads wait */
	op = message(program(b->fd, "loopback"), "x", 1);
	CHECK_EQ(submit(b->fd, &op, 1), 1);
	p.fd = b->fd;
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	begin_reading(&b->first, b->fd, b->buffer.p);
	await_fault(&b->buffer);
	begin_reading(&b->second, b->fd, &b->c);
	await_sleep(&b->second);
}

static void end_put_back(struct put_back *b)
{
	struct timespec late;

	let_vanish(&b->buffer);
	pthread_join(b->first.thread, NULL);
	CHECK_EQ(b->first.error, EFAULT);
	clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += PATIENCE_MS / 1000;
	if (pthread_timedjoin_np(b->second.thread, NULL, &late)) {
		CHECK(!"the second read returns");
		exit(1); /* with a thread that nothing ends */
	}
	CHECK_EQ(b->second.n, sizeof(b->c));
	CHECK_EQ(b->c.status, NFC_OK);
	close(b->fd);
	free_lazy(&b->buffer);
}

CASE(a_completion_that_was_put_back)
{
	struct put_back b;

	begin_put_back(&b);
	end_put_back(&b);
}

/* The end of the file comes after the completion, not before. */
CASE(a_completion_that_was_put_back_when_the_device_went)
{
	char device[PATH_MAX];
	struct put_back b;

	find_device(device);
	begin_put_back(&b);
	unbind(device);
	end_put_back(&b);
	bind_to(device);
	await_node();
	check_device();
}

// SPDX-License-Identifier: MIT
/*
 * Two disturbances at the same time, with clients at work and one whose memory does
 * not come: whichever is first, both return, each client hears that its device is
 * gone, no page stays pinned, and the device works again.
 *
 *	pairs [ROUNDS]	of each pair
 *
 * Those of "aer_meets" need a port that reports errors, and CONFIG_PCIEAER_INJECT.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "crew.h"
#include "lazy.h"
#include "rig.h"

enum {
	ROUNDS = 1,
	LATEST_US = 3000, /* one strikes so much later than the other, at most */
};

/* The objects that are disturbed. */
struct scene {
	char device[PATH_MAX];
	uint8_t *memory; /* of the crew */
	struct crew crew;
	pid_t staller; /* a client whose transfer stalls */
};

/* A disturbance: 0, or why it could not be. */
typedef int disturb(const struct scene *s);

/* It came too late, or in the middle of the other. */
static bool forestalled(int error)
{
	return error == ENOENT || error == ENODEV || error == ENXIO ||
	       error == EBUSY || error == EAGAIN;
}

static int put_to(const struct scene *s, const char *file, const char *text)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", s->device, file);
	return try_put(path, text);
}

static int reset_ioctl(const struct scene *s)
{
	static const struct nfcomms_reset any_shape;
	int fd = open(node(), O_RDWR | O_CLOEXEC), error;

	(void)s;
	if (fd < 0)
		return errno;
	error = reset(fd, any_shape);
	close(fd);
	return error;
}

static int flr(const struct scene *s)
{
	return put_to(s, "reset", "1");
}

static int unbinding(const struct scene *s)
{
	return put_to(s, "driver/unbind", strrchr(s->device, '/') + 1);
}

static int removal(const struct scene *s)
{
	return put_to(s, "remove", "1");
}

static int sleeping(const struct scene *s)
{
	(void)s;
	return try_suspend();
}

static int killing(const struct scene *s)
{
	fire(&s->crew);
	return 0;
}

static int end_of_staller(const struct scene *s)
{
	return kill(s->staller, SIGKILL) ? errno : 0;
}

/* The module goes as soon as its clients, who die, are gone. */
static int unloading(const struct scene *s)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	int error;

	killing(s);
	end_of_staller(s);
	while ((error = unload()) == EAGAIN && now_ns() < end)
		usleep(200);
	return error;
}

/* The port reports that its link failed; over when the kernel has dealt with it. */
static int aer(const struct scene *s)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;

	empty_log();
	inject_error(s->device, LINK_PROTOCOL, 0);
	while (!log_says("device recovery ") && now_ns() < end)
		usleep(1000);
	return log_says("device recovery ") ? 0 : ETIMEDOUT;
}

/* Hold a page back until the staller is dead, also to those who wait for it. */
static int keep(void *argument)
{
	const pid_t *staller = argument;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == *staller)
		pause();
	return 0;
}

/* A client with a worker of the driver that waits for memory. */
static int stall(void *argument)
{
	const int *ready = argument;
	struct lazy memory = lazy_pages(NFC_PAGE_SIZE, 0);
	struct nfcomms_completion c = { .status = NFC_OK };
	pid_t self = getpid();
	int fd;

	child(keep, &self);
	fd = client();
	stall_worker(fd, program(fd, "hold"), &memory);
	await_fault(&memory);
	CHECK(write(*ready, "", 1) == 1);
	CHECK(reap(fd, &c));
	CHECK(c.status == NFC_ERESET || c.status == NFC_EFAULT);
	return test_failures() != 0;
}

static pid_t begin_stalling(void)
{
	int way[2];
	pid_t pid;
	char byte;

	CHECK(pipe(way) == 0);
	pid = child(stall, &way[1]);
	close(way[1]);
	CHECK(read(way[0], &byte, 1) == 1);
	close(way[0]);
	return pid;
}

static void end_stalling(pid_t pid)
{
	int status = wait_child(pid);

	CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL :
				    WEXITSTATUS(status) == 0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* the keeper */
}

/* One of two that strike together. */
struct side {
	const char *name;
	disturb *strike;
	const struct scene *scene;
	pthread_barrier_t *ready;
	useconds_t late;
	pthread_t thread;
	int error;
	int refused; /* times */
};

static void *strike(void *argument)
{
	struct side *side = argument;

	pthread_barrier_wait(side->ready);
	usleep(side->late);
	side->error = side->strike(side->scene);
	return NULL;
}

static void strike_together(struct side side[2])
{
	pthread_barrier_t ready;

	pthread_barrier_init(&ready, NULL, 2);
	for (int i = 0; i < 2; i++) {
		side[i].ready = &ready;
		CHECK(!pthread_create(&side[i].thread, NULL, strike, &side[i]));
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(side[i].thread, NULL);
		side[i].refused += side[i].error != 0;
		if (!CHECK(!side[i].error || forestalled(side[i].error)))
			printf("%s: %s\n", side[i].name,
			       strerror(side[i].error));
	}
	pthread_barrier_destroy(&ready);
}

/* End the epoch, if the driver has the device still; who waits hears of it. */
static void end_epoch(const struct scene *s)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	int error;

	while ((error = reset_ioctl(s)) == EBUSY && now_ns() < end)
		usleep(1000);
	CHECK(!error || forestalled(error));
}

/* Bring back what went: the module, the device, the one to the other. */
static void bring_back(const struct scene *s)
{
	char driver[PATH_MAX + 32];

	if (access("/sys/module/nfcomms", F_OK))
		CHECK_EQ(load(), 0);
	if (access(s->device, F_OK))
		rescan();
	snprintf(driver, sizeof(driver), "%s/driver", s->device);
	if (access(driver, F_OK) && try_put("/sys/bus/pci/drivers/nfcomms/bind",
					    strrchr(s->device, '/') + 1)) {
		/* A link was reset while no driver was there to put back what it lost. */
		remove_device(s->device);
		rescan();
	}
	await_node();
}

static void one_round(struct scene *s, struct side side[2])
{
	still_alive();
	close(fresh());
	find_device(s->device);
	s->staller = begin_stalling();
	s->crew = hire(s->memory);
	strike_together(side);
	end_epoch(s);
	await_ends(&s->crew);
	end_stalling(s->staller);
	bring_back(s);
	close(fresh());
	check_pins();
	check_device();
}

static void check_pair(struct side first, struct side second)
{
	long rounds = test_argument ? atol(test_argument) : ROUNDS;
	struct scene scene = { .memory = pages(BULK, 1) };
	struct side side[2] = { first, second };
	uint64_t seed = seed_for("pairs");

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (long i = 0; i < rounds && !test_failures(); i++) {
		progress(i, rounds);
		for (int k = 0; k < 2; k++) {
			side[k].scene = &scene;
			side[k].late = next_random(&seed) % LATEST_US;
		}
		one_round(&scene, side);
	}
	printf("%s, %s: %ld rounds, refused %d and %d times\n", side[0].name,
	       side[1].name, rounds, side[0].refused, side[1].refused);
	free_pages(scene.memory, BULK);
}

#define SIDE(what) ((struct side){ .name = #what, .strike = what })
#define PAIR(one, other)                            \
	CASE(one##_and_##other)                     \
	{                                           \
		check_pair(SIDE(one), SIDE(other)); \
	}
#define AER(other)                                  \
	CASE(aer_meets_##other)                     \
	{                                           \
		check_pair(SIDE(aer), SIDE(other)); \
	}

PAIR(reset_ioctl, flr)
PAIR(reset_ioctl, unbinding)
PAIR(reset_ioctl, removal)
PAIR(reset_ioctl, sleeping)
PAIR(reset_ioctl, killing)
PAIR(reset_ioctl, end_of_staller)
PAIR(reset_ioctl, unloading)
PAIR(flr, unbinding)
PAIR(flr, removal)
PAIR(flr, sleeping)
PAIR(flr, killing)
PAIR(flr, end_of_staller)
PAIR(flr, unloading)
PAIR(unbinding, removal)
PAIR(unbinding, sleeping)
PAIR(unbinding, killing)
PAIR(unbinding, end_of_staller)
PAIR(unbinding, unloading)
PAIR(removal, sleeping)
PAIR(removal, killing)
PAIR(removal, end_of_staller)
PAIR(removal, unloading)
PAIR(sleeping, killing)
PAIR(sleeping, end_of_staller)
PAIR(sleeping, unloading)
PAIR(killing, end_of_staller)
PAIR(end_of_staller, unloading)
AER(reset_ioctl)
AER(flr)
AER(unbinding)
AER(killing)
AER(end_of_staller)
AER(unloading)
/* Last: the bus may free a lock that it holds, and nothing checks locks after that. */
AER(removal)

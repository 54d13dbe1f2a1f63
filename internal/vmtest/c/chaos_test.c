// SPDX-License-Identifier: MIT
/*
 * Clients of every kind come, work, die and come again, on all nodes of the machine,
 * while devices are reset, fail and are taken away, and the module is unloaded. Each
 * call returns, each unload succeeds in the end, and no page stays pinned.
 *
 *	chaos [UNLOADS]
 *
 * With NFC_LIES the devices break the rules: a call, a reset and a boot may fail.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "bus.h"
#include "region.h"
#include "rig.h"

enum {
	CLIENTS = 20,
	UNLOADS = 2,
	DISTURBANCES = 4, /* between two unloads */
	LATEST_US = 400000, /* one comes so much later than the other, at most */
	NODES = 24, /* at most */
	SIZE = 256 << 10,
	CALL_MS = 400, /* a call that takes longer is interrupted */
	PAUSE_US = 20000, /* of a client between two files, to begin with */
	PAUSE_MAX_US = 60000000,
	STEP_US = 20000,
	ERRNO_COUNT = 134,
};

/* The state that parent and clients share. */
struct shared {
	volatile bool over;
	volatile unsigned int pause_us;
	volatile unsigned long served; /* files that were open, roughly */
	unsigned long ended[NFC_STATUS_COUNT], refused[ERRNO_COUNT];
};

static struct shared *shared;
static int nodes; /* so many; their functions: */
static char device[NODES][PATH_MAX];
static bool lies;
static struct buffer buffer = { .fd = -1 }; /* if the kernel makes some */
static long held; /* pages that are pinned for it */

/* A client with a file. */
struct visit {
	int fd;
	uint8_t *p; /* SIZE bytes */
	uint64_t *seed;
};

/* ---- calls, any of which the device's end may meet ---- */

static void count(unsigned long *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static void give_up(int sig)
{
	(void)sig;
}

/* A target may wait for ever for what a device swallowed. */
static void bound_calls(void)
{
	struct sigaction action = { .sa_handler = give_up };
	struct itimerval each = { { 0, CALL_MS * 1000 }, { 0, CALL_MS * 1000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

/* An ioctl may fail as one does whose device or channel is gone. */
static bool honest(int error)
{
	if (error >= 0 && error < ERRNO_COUNT)
		count(&shared->refused[error]);
	switch (error) {
	case 0:
	case EAGAIN:
	case EBUSY:
	case EINTR:
	case EIO:
	case EHOSTDOWN:
	case ENODEV:
	case ENOENT:
		return true;
	}
	printf("%s\n", strerror(error));
	return CHECK(!"an errno that says why");
}

static bool done(int fd, const struct nfcomms_op *op,
		 struct nfcomms_completion *c)
{
	int error = call(fd, op, c);

	if (!honest(error) || error)
		return false;
	if (CHECK(c->status < NFC_STATUS_COUNT))
		count(&shared->ended[c->status]);
	return c->status == NFC_OK;
}

/* Start a program and open its channel: the handle, 0 if that was not to be. */
static uint32_t begin(int fd, const char *name)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_start request = {
		.request = NFCOMMS_CONTROL_START, .targets = 1
	};
	struct nfcomms_completion c;

	strncpy((char *)request.name, name, NFC_NAME_SIZE - 1);
	memcpy(op.payload, &request, sizeof(request));
	if (!done(fd, &op, &c))
		return 0;
	memcpy(&request, c.payload, sizeof(request));
	op = operation(NFCOMMS_OP_SUBSCRIBE, 0);
	op.target = request.first;
	return !request.status && done(fd, &op, &c) ? c.channel : 0;
}

static void send_then_receive(int fd, struct nfcomms_op op)
{
	struct nfcomms_completion c;

	if (op.channel && done(fd, &op, &c)) {
		op.opcode = NFCOMMS_OP_RECEIVE_IND;
		done(fd, &op, &c);
	}
}

/* A transfer that no target takes. */
static bool leave_pending(int fd, uint8_t *p)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, begin(fd, "hold"),
					p, SIZE);
	int taken = op.channel ? submit(fd, &op, 1) : 0;

	return honest(taken < 0 ? -taken : 0) && taken > 0;
}

/* ---- ways to use a file; each leaves all to the close ---- */

static void messages(const struct visit *v)
{
	uint32_t ch = begin(v->fd, "loopback");
	struct nfcomms_op out = message(ch, "here", 4);
	struct nfcomms_op in = operation(NFCOMMS_OP_RECEIVE, ch);
	struct nfcomms_completion c;

	in.length = NFCOMMS_PAYLOAD_SIZE;
	if (ch && done(v->fd, &out, &c))
		done(v->fd, &in, &c);
}

static void transfers(const struct visit *v)
{
	send_then_receive(v->fd, transfer(NFCOMMS_OP_SEND_IND,
					  begin(v->fd, "loopback"), v->p, SIZE));
}

/* A transfer of a region, which the client gives back in time, or too early. */
static void in_region(const struct visit *v, struct nfcomms_register r)
{
	struct nfcomms_unregister u = { .size = sizeof(u) };
	struct nfcomms_op op = operation(NFCOMMS_OP_SEND_IND, 0);
	int error = control(v->fd, NFCOMMS_IOC_REGISTER, &r);

	if (!honest(error) || error)
		return;
	op.channel = begin(v->fd, "loopback");
	op.region = u.region = r.region;
	op.length = SIZE;
	if (op.channel && next_random(v->seed) % 2)
		submit(v->fd, &op, 1);
	else
		send_then_receive(v->fd, op);
	if (next_random(v->seed) % 2)
		honest(control(v->fd, NFCOMMS_IOC_UNREGISTER, &u));
}

static void registered(const struct visit *v)
{
	in_region(v, region_at(v->p, SIZE));
}

static void imported(const struct visit *v)
{
	struct nfcomms_register r;

	if (buffer.fd < 0)
		return;
	r = with_fd(NULL, NFCOMMS_REGION_DMA_BUF, buffer.fd, 0);
	r.length = SIZE;
	in_region(v, r);
}

/* The memory of a region and of a transfer is unmapped below them. */
static void unmapped(const struct visit *v)
{
	uint8_t *p = pages(SIZE, 2);
	struct nfcomms_register r = region_at(p, SIZE);

	honest(control(v->fd, NFCOMMS_IOC_REGISTER, &r));
	leave_pending(v->fd, p);
	free_pages(p, SIZE);
}

static void left_pending(const struct visit *v)
{
	leave_pending(v->fd, v->p);
}

static void counted(const struct visit *v)
{
	struct nfcomms_eventfd e = {
		.size = sizeof(e),
		.fd = eventfd(0, EFD_CLOEXEC),
	};
	struct pollfd p = { .fd = e.fd, .events = POLLIN };

	if (honest(control(v->fd, NFCOMMS_IOC_EVENTFD, &e)) &&
	    leave_pending(v->fd, v->p)) {
		honest(cancel(v->fd, taken_id()));
		poll(&p, 1, CALL_MS);
	}
	close(e.fd);
}

/* Parent and child use the file at once; the child dies somewhere. */
static void inherited(const struct visit *v)
{
	pid_t pid = fork();

	if (pid == 0) {
		bound_calls();
		for (; !shared->over; usleep(1000))
			transfers(v);
		_exit(0);
	}
	messages(v);
	usleep(next_random(v->seed) % 20000);
	kill(pid, SIGKILL);
	wait_child(pid);
}

/* A child takes the file, with what is pending, into another program. */
static void executed(const struct visit *v)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct nfcomms_register r = region_at(v->p, SIZE);
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		bound_calls();
		honest(control(v->fd, NFCOMMS_IOC_REGISTER, &r));
		leave_pending(v->fd, v->p);
		fcntl(v->fd, F_SETFD, 0);
		dup2(null, 1);
		execl("/proc/self/exe", "chaos", "-n", "no case", NULL);
		_exit(1);
	}
	wait_child(pid);
	messages(v);
}

static void (*const ways[])(const struct visit *v) = {
	messages,     transfers, registered, imported, unmapped,
	left_pending, counted,	 inherited,  executed,
};

/* ---- clients ---- */

/* Have no file for some time, which ends with the pauses: the module is back. */
static void pause_somewhat(uint64_t *seed)
{
	unsigned int left = next_random(seed) % shared->pause_us;

	while (left > STEP_US && left <= shared->pause_us && !shared->over) {
		usleep(STEP_US);
		left -= STEP_US;
	}
	usleep(next_random(seed) % STEP_US);
}

/* A file after another, until the end. */
static int comes_again(void *argument)
{
	uint64_t seed = (uint64_t)getpid();
	struct visit v = { .p = pages(SIZE, 1), .seed = &seed };

	(void)argument;
	bound_calls();
	while (!shared->over && !test_failures()) {
		char path[32];

		snprintf(path, sizeof(path), "/dev/nfcomms%d",
			 (int)(next_random(&seed) % nodes));
		v.fd = open(path, O_RDWR | O_CLOEXEC);
		if (v.fd < 0) {
			CHECK(errno == ENOENT || errno == ENXIO ||
			      errno == ENODEV || errno == EINTR);
			usleep(1000);
			continue;
		}
		shared->served++;
		ways[next_random(&seed) % (sizeof(ways) / sizeof(*ways))](&v);
		close(v.fd);
		pause_somewhat(&seed);
	}
	return test_failures() != 0;
}

/* ---- disturbances ---- */

static void check_disturbed(const char *what, int error)
{
	static const int other[] = { 0, ENOENT, ENODEV, ENXIO, EBUSY, EAGAIN };
	bool ok = lies;

	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
		ok |= error == other[i];
	if (!CHECK(ok))
		printf("%s: %s\n", what, strerror(error));
}

static int put_to(const char *function, const char *file, const char *text)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", function, file);
	return try_put(path, text);
}

static int reset_all(const char *function)
{
	static const struct nfcomms_reset any_shape;
	int fd, error = 0;
	char path[32];

	(void)function;
	for (int i = 0; i < nodes && !error; i++) {
		snprintf(path, sizeof(path), "/dev/nfcomms%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		error = fd < 0 ? errno : reset(fd, any_shape);
		close(fd);
	}
	return error;
}

static int flr(const char *function)
{
	return put_to(function, "reset", "1");
}

static int unbinding(const char *function)
{
	return put_to(function, "driver/unbind", strrchr(function, '/') + 1);
}

static int removal(const char *function)
{
	return put_to(function, "remove", "1");
}

/* The port reports that its link failed; over when the kernel has dealt with it. */
static int aer(const char *function)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	char port[PATH_MAX + 32];

	snprintf(port, sizeof(port), "%s/../config", function);
	if (access("/dev/aer_inject", F_OK) || access(port, F_OK))
		return flr(function);
	empty_log();
	inject_error(function, LINK_PROTOCOL, 0);
	while (!log_says("device recovery ") && now_ns() < end)
		usleep(1000);
	return log_says("device recovery ") ? 0 : ETIMEDOUT;
}

static const struct {
	const char *name;
	int (*strike)(const char *function);
} disturbances[] = { { "reset", reset_all },
		     { "function reset", flr },
		     { "unbind", unbinding },
		     { "remove", removal },
		     { "error of the bus", aer } };

/* The function has its driver again; a device that lies may refuse to boot. */
static void bring_back(const char *function)
{
	const char *name = strrchr(function, '/') + 1;
	int error = 0;

	if (access(function, F_OK))
		rescan();
	if (put_to(function, "driver/uevent", "change"))
		error = try_put("/sys/bus/pci/drivers/nfcomms/bind", name);
	if (error && !access(function, F_OK)) {
		/* A link was reset while no driver was there to put back what it lost. */
		remove_device(function);
		rescan();
	}
	CHECK(lies || !access(node(), F_OK));
}

static void disturb(uint64_t *seed)
{
	const char *function = device[next_random(seed) % nodes];
	size_t i = next_random(seed) %
		   (sizeof(disturbances) / sizeof(*disturbances));

	check_disturbed(disturbances[i].name, disturbances[i].strike(function));
	bring_back(function);
}

/* Unload the module as soon as no client has it; they give it more and more time. */
static void unload_between(void)
{
	uint64_t end = now_ns() + 2 * PATIENCE_MS * 1000000ull, later = 0;
	int rc;

	while ((rc = unload()) == EAGAIN && now_ns() < end) {
		if (now_ns() > later && shared->pause_us < PAUSE_MAX_US) {
			shared->pause_us *= 2;
			later = now_ns() + 200000000;
		}
		usleep(500);
	}
	CHECK_EQ(rc, 0);
	shared->pause_us = PAUSE_US;
}

/* ---- the case ---- */

static void find_devices(void)
{
	char path[64];

	for (nodes = 0; nodes < NODES; nodes++) {
		snprintf(path, sizeof(path),
			 "/sys/class/nfcomms/nfcomms%d/device", nodes);
		if (!realpath(path, device[nodes]))
			break;
	}
	REQUIRE(nodes > 0);
}

static void one_round(uint64_t *seed)
{
	unsigned long served = shared->served;

	still_alive();
	for (int i = 0; i < DISTURBANCES; i++) {
		usleep(next_random(seed) % LATEST_US);
		disturb(seed);
	}
	while (shared->served < served + CLIENTS && !test_failures())
		usleep(1000); /* the harness's watchdog bounds it */
	unload_between();
	CHECK_EQ(pinned(), held);
	CHECK_EQ(load(), 0);
}

static void report(int unloads)
{
	printf("%d unloads, %lu files\n", unloads, shared->served);
	for (int i = 0; i < NFC_STATUS_COUNT; i++)
		if (shared->ended[i])
			printf("  status %-3d %lu\n", i, shared->ended[i]);
	for (int i = 1; i < ERRNO_COUNT; i++)
		if (shared->refused[i])
			printf("  %-10s %lu\n", strerrorname_np(i),
			       shared->refused[i]);
}

CASE(clients_that_come_again_while_all_else_goes)
{
	int unloads = test_argument ? atoi(test_argument) : UNLOADS;
	uint64_t seed = seed_for("chaos");
	pid_t pid[CLIENTS];

	lies = getenv("NFC_LIES");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED);
	find_devices();
	if (!access("/dev/udmabuf", F_OK))
		buffer = buffer_new();
	held = pinned();
	shared->pause_us = PAUSE_US;
	for (int i = 0; i < CLIENTS; i++)
		pid[i] = child(comes_again, NULL);
	setpriority(PRIO_PROCESS, 0, -20); /* the clients have all processors */
	for (int i = 0; i < unloads && !test_failures(); i++) {
		progress((uint64_t)i, (uint64_t)unloads);
		one_round(&seed);
	}
	shared->over = true;
	setpriority(PRIO_PROCESS, 0, 0); /* its patience is as long as theirs */
	for (int i = 0; i < CLIENTS; i++)
		CHECK_EQ(wait_child(pid[i]), 0);
	report(unloads);
	if (buffer.fd >= 0)
		buffer_free(&buffer);
	check_pins();
	unload_between();
	CHECK_EQ(pinned(), 0);
	CHECK_EQ(load(), 0);
	if (!lies) {
		await_node();
		check_device();
	}
	munmap(shared, sizeof(*shared));
}

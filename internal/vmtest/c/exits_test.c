// SPDX-License-Identifier: MIT
/*
 * Clients that end at every state of the protocol, and what is a client's own:
 * nothing of one is ever seen by another, and its end releases all it held.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	BULK = 32 << 20,
	THIRD = 3, /* id of what a client submits after START and SUBSCRIBE */
	KILLS = 2, /* of each state, after different times */
};

static uint8_t *bulk; /* BULK bytes, mapped before the children are born */

/* Submit one operation that must be accepted. */
static void give(int fd, struct nfcomms_op op)
{
	CHECK_EQ(submit(fd, &op, 1), 1);
}

static void state_open(int fd)
{
	(void)fd;
}

static void state_subscribed(int fd)
{
	program(fd, "hold");
}

static void state_sends_queued(int fd)
{
	uint32_t ch = program(fd, "hold");

	for (int i = 0; i < 10; i++)
		give(fd, message(ch, &i, sizeof(i)));
}

static void state_transfer_offered(int fd)
{
	give(fd, transfer(NFCOMMS_OP_SEND_IND, program(fd, "hold"), bulk, BULK));
}

static void state_sending(int fd)
{
	give(fd, transfer(NFCOMMS_OP_SEND_IND, program(fd, "sink"), bulk, BULK));
}

static void state_sending_many(int fd)
{
	for (int i = 0; i < 8; i++)
		give(fd, transfer(NFCOMMS_OP_SEND_IND, program(fd, "sink"),
				  bulk + i * (BULK / 8), BULK / 8));
}

static void state_receive_waits(int fd)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE, program(fd, "loopb"
									 "ac"
									 "k"));

	op.length = NFCOMMS_PAYLOAD_SIZE;
	give(fd, op);
}

static void state_receive_ind_waits(int fd)
{
	give(fd, transfer(NFCOMMS_OP_RECEIVE_IND, program(fd, "loopback"), bulk,
			  BULK));
}

static void state_receiving(int fd)
{
	uint32_t ch = program(fd, "source");

	ask_source(fd, ch, BULK, 1);
	give(fd, transfer(NFCOMMS_OP_RECEIVE_IND, ch, bulk, BULK));
}

static void state_message_held(int fd)
{
	uint32_t ch = program(fd, "loopback");
	struct nfcomms_op send = message(ch, "held", 4);
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE, ch);

	CHECK_EQ(outcome(fd, &send), NFC_OK);
	op.length = NFCOMMS_PAYLOAD_SIZE;
	op.flags = NFCOMMS_HOLD;
	CHECK_EQ(outcome(fd, &op), NFC_OK);
}

static void state_transfer_held(int fd)
{
	uint32_t ch = program(fd, "source");
	struct nfcomms_op op = transfer(NFCOMMS_OP_RECEIVE_IND, ch, bulk,
					1 << 20);

	ask_source(fd, ch, 1 << 20, 1);
	op.flags = NFCOMMS_HOLD;
	CHECK_EQ(outcome(fd, &op), NFC_OK);
}

static void state_next_and_arm(int fd)
{
	uint32_t ch = program(fd, "hold");
	struct nfcomms_op op = operation(NFCOMMS_OP_ARM, ch);

	give(fd, operation(NFCOMMS_OP_NEXT, ch));
	op.flags = NFCOMMS_H2D;
	give(fd, op);
}

static void state_completion_unread(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	give(fd, message(program(fd, "sink"), "x", 1));
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
}

static void state_loading(int fd)
{
	give(fd, image(bulk, BULK / 4));
}

static void state_closing(int fd)
{
	uint32_t ch = program(fd, "sink");
	struct nfcomms_op op = operation(NFCOMMS_OP_CLOSE, ch);

	give(fd, transfer(NFCOMMS_OP_SEND_IND, ch, bulk, BULK));
	op.flags = NFCOMMS_H2D | NFCOMMS_D2H;
	give(fd, op);
}

static void state_cancelling(int fd)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND,
					program(fd, "sink"), bulk, BULK);
	int error;

	give(fd, op);
	error = cancel(fd, taken_id());
	CHECK(error == 0 || error == ENOENT); /* it may be over already */
}

static const struct state {
	const char *name;
	void (*enter)(int fd);
} states[] = {
	{ "open", state_open },
	{ "subscribed", state_subscribed },
	{ "sends queued", state_sends_queued },
	{ "transfer offered", state_transfer_offered },
	{ "sending", state_sending },
	{ "sending many", state_sending_many },
	{ "receive waits", state_receive_waits },
	{ "receive_ind waits", state_receive_ind_waits },
	{ "receiving", state_receiving },
	{ "message held", state_message_held },
	{ "transfer held", state_transfer_held },
	{ "next and arm", state_next_and_arm },
	{ "completion unread", state_completion_unread },
	{ "loading", state_loading },
	{ "closing", state_closing },
	{ "cancelling", state_cancelling },
};

/* A child that enters a state, says so, and waits for its end. */
struct client_args {
	const struct state *state;
	int ready; /* where it says so */
};

static int live(void *argument)
{
	struct client_args *a = argument;
	int fd = client();

	a->state->enter(fd);
	if (write(a->ready, "", 1) != 1 || test_failures())
		return 1;
	pause();
	return 0;
}

/* Bring a child into a state and kill it a moment later. */
static void kill_in(const struct state *s, unsigned int delay_us)
{
	struct client_args a = { .state = s };
	int way[2], status;
	char byte;
	pid_t pid;

	REQUIRE(pipe(way) == 0);
	a.ready = way[1];
	pid = child(live, &a);
	close(way[1]);
	if (!CHECK(read(way[0], &byte, 1) == 1))
		printf("state: %s\n", s->name);
	usleep(delay_us);
	kill(pid, SIGKILL);
	status = wait_child(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(way[0]);
	check_pins();
}

CASE(killed_at_every_state)
{
	uint64_t seed = seed_for("kill");

	close(fresh());
	bulk = pages(BULK, 0x5a);
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		for (int k = 0; k < KILLS; k++)
			kill_in(&states[i], next_random(&seed) % 5000);
		check_device();
		if (test_failures())
			printf("after state: %s\n", states[i].name);
	}
	free_pages(bulk, BULK);
}

/* "killer N": kill -9 with DMA in flight, N times. */
CASE(killed_many_times)
{
	static const int with_dma[] = { 4, 5, 8 };
	long count = test_argument ? atol(test_argument) : 20;
	uint64_t seed = seed_for("kill");

	close(fresh());
	bulk = pages(BULK, 0x5a);
	for (long i = 0; i < count && !test_failures(); i++) {
		still_alive();
		progress(i, count);
		kill_in(&states[with_dma[i % 3]], next_random(&seed) % 3000);
	}
	printf("killed %ld clients with DMA in flight\n", count);
	check_device();
	free_pages(bulk, BULK);
}

CASE(exit_without_close)
{
	struct client_args a = { .state = &states[4] };
	int way[2], status;
	pid_t pid;

	REQUIRE(pipe(way) == 0);
	a.ready = way[1];
	bulk = pages(BULK, 0x5a);
	close(fresh());
	pid = child(live, &a);
	status = read(way[0], &status, 1);
	kill(pid, SIGTERM); /* the default action: exit, files closed by it */
	CHECK(WIFSIGNALED(wait_child(pid)));
	close(way[0]);
	close(way[1]);
	check_pins();
	check_device();
	free_pages(bulk, BULK);
}

/* A cancel ends the one that it names, however many carry the same user_data. */
CASE(cancelled_by_the_thousand)
{
	enum { MANY = 1000 };
	int fd = fresh();
	struct nfcomms_completion c;
	struct nfcomms_op op = message(program(fd, "hold"), "x", 1);
	uint64_t first;

	op.user_data = 5;
	give(fd, op);
	first = taken_id();
	for (int i = 0; i < MANY; i++)
		give(fd, op);
	CHECK_EQ(taken_id(), first + MANY);
	CHECK_EQ(cancel_all(fd, first, first + MANY - 1), MANY);
	for (int i = 0; i < MANY && !test_failures(); i++) {
		CHECK(reap(fd, &c));
		CHECK(c.id >= first && c.id < first + MANY);
		CHECK_EQ(c.user_data, 5);
		CHECK_EQ(c.status, NFC_EWITHDRAWN);
	}
	CHECK_EQ(cancel_all(fd, 0, first + MANY - 1), 0);
	CHECK_EQ(cancel(fd, first + MANY), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.id, first + MANY);
	close(fd);
	check_device();
}

/* A completion has the operation's number, and the epoch that it was in. */
CASE(completions_name_their_epoch)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_op op, late;
	struct nfcomms_completion c;
	int fd = fresh(), other = client();

	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	op = message(program(fd, "hold"), "x", 1);
	give(fd, op);
	CHECK_EQ(reset(other, (struct nfcomms_reset){ .size = 0 }), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_ERESET);
	CHECK_EQ(c.id, taken_id());
	CHECK_EQ(c.epoch, info.epoch);
	late = operation(NFCOMMS_OP_SUBSCRIBE, 0);
	late.epoch = info.epoch;
	CHECK_EQ(call(fd, &late, &c), 0);
	CHECK_EQ(c.error, ESTALE);
	CHECK_EQ(c.epoch, info.epoch + 1); /* that refused it */
	close(fd);
	close(other);
	check_device();
}

CASE(a_client_sees_only_its_own)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	int a = fresh(), b = client();
	uint32_t first = 0, ch, status;
	struct nfcomms_op op;
	struct nfcomms_channel info = { .size = sizeof(info) };
	uint64_t id;

	CHECK_EQ(start(a, "hold", 1, &first), NFC_OK);
	ch = subscribe(a, first);
	op = message(ch, "x", 1);
	give(a, op);
	id = taken_id();
	CHECK_EQ(submit(b, &op, 1), -ENOENT); /* no such handle here */
	CHECK_EQ(call(b, &op, NULL), ENOENT);
	info.channel = ch;
	CHECK_EQ(control(b, NFCOMMS_IOC_CHANNEL, &info), ENOENT);
	CHECK_EQ(cancel(b, id), ENOENT);
	op = operation(NFCOMMS_OP_SUBSCRIBE, 0);
	op.target = first;
	CHECK_EQ(outcome(b, &op), NFC_EBUSY);
	close(a);
	do /* a close waits for a second */
		status = outcome(b, &op);
	while (status == NFC_EBUSY && now_ns() < end);
	CHECK_EQ(status, NFC_ENOTARGET); /* its process ended with it */
	close(b);
}

CASE(a_process_is_its_files)
{
	int a = fresh(), b = client();
	struct nfcomms_request_start request = {
		.request = NFCOMMS_CONTROL_START, .targets = 1
	};
	struct nfcomms_request_process stop = { .request = NFCOMMS_CONTROL_STOP };
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_completion c;
	uint32_t ch;

	strcpy((char *)request.name, "loopback");
	memcpy(op.payload, &request, sizeof(request));
	CHECK_EQ(call(a, &op, &c), 0);
	memcpy(&request, c.payload, sizeof(request));
	CHECK_EQ(request.status, NFC_OK);
	ch = subscribe(a, request.first);
	stop.process = request.process;
	memcpy(op.payload, &stop, sizeof(stop));
	if (call(b, &op, &c) == 0) {
		memcpy(&stop, c.payload, sizeof(stop));
		CHECK(c.status != NFC_OK || stop.status == NFC_EINVAL);
	}
	check_alive(a, ch);
	close(a);
	close(b);
}

/* A descriptor that went to another process by a message. */
static int pass(int to, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(to, &m, 0) == 1 ? 0 : -1;
}

static int taken(int from)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = sizeof(room) };
	int fd = -1;

	if (recvmsg(from, &m, 0) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static int hand_over(void *argument)
{
	int *pair = argument, fd = client();
	struct nfcomms_op op;

	op = transfer(NFCOMMS_OP_SEND_IND, program(fd, "hold"), bulk, BULK);
	give(fd, op);
	CHECK_EQ(taken_id(), THIRD);
	return pass(pair[1], fd) || test_failures();
}

/* The client's maker is gone, with its memory; the file lives on elsewhere. */
CASE(passed_to_another_process)
{
	struct nfcomms_completion c;
	int pair[2], fd, status;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	close(fresh());
	bulk = pages(BULK, 0x5a);
	status = wait_child(child(hand_over, pair));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fd = taken(pair[0]);
	REQUIRE(fd >= 0);
	CHECK_EQ(cancel(fd, THIRD), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.id, THIRD);
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
	check_alive(fd, program(fd, "loopback"));
	close(fd);
	close(pair[0]);
	close(pair[1]);
	free_pages(bulk, BULK);
	check_pins();
}

static void nothing(int sig)
{
	(void)sig;
}

struct blocked {
	int fd;
	struct nfcomms_op op;
	int error;
	volatile bool over;
};

static void *block(void *argument)
{
	struct blocked *b = argument;

	b->error = call(b->fd, &b->op, NULL);
	b->over = true;
	return NULL;
}

CASE(closed_while_a_thread_is_inside)
{
	struct sigaction action = { .sa_handler = nothing };
	struct blocked b = { .fd = fresh() };
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	bulk = pages(BULK, 0x5a);
	b.op = transfer(NFCOMMS_OP_SEND_IND, program(b.fd, "hold"), bulk, BULK);
	REQUIRE(pthread_create(&thread, NULL, block, &b) == 0);
	while (!pinned() && !b.over)
		usleep(100); /* until its first window is pinned */
	close(b.fd);
	while (!b.over) { /* the call keeps the file: a signal ends it */
		pthread_kill(thread, SIGUSR1);
		usleep(1000);
	}
	pthread_join(thread, NULL);
	CHECK_EQ(b.error, EINTR);
	check_pins();
	free_pages(bulk, BULK);
	check_device();
}

/* Request and close, on the processor of the driver's worker and before it. */
static int ask_and_close(void *argument)
{
	struct sched_param first = { .sched_priority = 1 };
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_memory memory = {
		.request = NFCOMMS_CONTROL_MEMORY
	};
	cpu_set_t one;

	(void)argument;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	memcpy(op.payload, &memory, sizeof(memory));
	for (int i = 0; i < 100 && !test_failures(); i++) {
		struct nfcomms_completion c;
		int fd = client();

		give(fd, op);
		CHECK(reap(fd, &c));
		CHECK_EQ(c.status, NFC_OK);
		close(fd);
	}
	return test_failures() ? 1 : 0;
}

/*
 * A client that has its answer may close at once, while the worker still uses
 * the file.
 */
CASE(closed_the_moment_it_was_answered)
{
	static const char workers[] = "/sys/devices/virtual/workqueue/cpumask";
	char before[64] = "";
	int status, fd = open(workers, O_RDONLY | O_CLOEXEC);

	CHECK(read(fd, before, sizeof(before) - 1) > 0);
	close(fd);
	put(workers, "1");
	status = wait_child(child(ask_and_close, NULL));
	put(workers, before);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check_device();
}

// SPDX-License-Identifier: MIT
/*
 * Memory whose pages are read from a file system that does not answer (a FUSE
 * server of our own): a client that names it waits, and no other. Needs
 * CONFIG_FUSE_FS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	FILE_NODE = 2,
	READ_MAX = 128 << 10, /* bytes of one request */
	ROOM = READ_MAX + 8192, /* for any request, and any answer */
	BULK = 20 << 20, /* more than is pinned at once */
	LATE = 16 << 20, /* behind what is pinned before anything is acked */
	IMAGE = 64 << 10,
};

#define FOLDER "/tmp/stall"

/* The server. Reads of the file wait from a place on, until they are let go. */
static struct server {
	int fd;
	pthread_t thread;
	uint8_t *bytes; /* of the file, mapped */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t stalls_at; /* UINT64_MAX: never */
	uint64_t waiting; /* the request that waits; 0: none */
	uint32_t waiting_size;
} server = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static const uint8_t zeros[READ_MAX]; /* what the file is full of */

static void answer(uint64_t unique, int error, const void *bytes, size_t size)
{
	struct fuse_out_header h = { .len = sizeof(h) + (error ? 0 : size),
				     .error = -error,
				     .unique = unique };
	struct iovec v[] = { { &h, sizeof(h) },
			     { (void *)bytes, error ? 0 : size } };

	if (writev(server.fd, v, 2) < 0)
		CHECK_EQ(errno, ENOENT); /* nobody waits any more */
}

static struct fuse_attr attributes(uint64_t node_id)
{
	return (struct fuse_attr){
		.ino = node_id,
		.size = node_id == FILE_NODE ? BULK : 0,
		.mode = node_id == FILE_NODE ? S_IFREG | 0444 : S_IFDIR | 0555,
		.nlink = 1,
	};
}

static void do_init(uint64_t unique, const struct fuse_init_in *in)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = in->max_readahead,
		.max_write = 4096,
	};

	answer(unique, 0, &out, sizeof(out));
}

static void do_lookup(uint64_t unique)
{
	struct fuse_entry_out out = {
		.nodeid = FILE_NODE,
		.entry_valid = 3600,
		.attr_valid = 3600,
		.attr = attributes(FILE_NODE),
	};

	answer(unique, 0, &out, sizeof(out));
}

static void do_getattr(uint64_t unique, uint64_t node_id)
{
	struct fuse_attr_out out = { .attr_valid = 3600,
				     .attr = attributes(node_id) };

	answer(unique, 0, &out, sizeof(out));
}

static void do_open(uint64_t unique)
{
	struct fuse_open_out out = { .fh = 1 };

	answer(unique, 0, &out, sizeof(out));
}

static void do_read(uint64_t unique, const struct fuse_read_in *in)
{
	CHECK(in->size <= READ_MAX);
	pthread_mutex_lock(&server.lock);
	if (in->offset + in->size > server.stalls_at && !server.waiting) {
		server.waiting = unique;
		server.waiting_size = in->size;
		pthread_cond_broadcast(&server.changed);
	} else {
		answer(unique, 0, zeros, in->size);
	}
	pthread_mutex_unlock(&server.lock);
}

static void handle(const struct fuse_in_header *h, const void *body)
{
	switch (h->opcode) {
	case FUSE_INIT:
		do_init(h->unique, body);
		break;
	case FUSE_LOOKUP:
		do_lookup(h->unique);
		break;
	case FUSE_GETATTR:
		do_getattr(h->unique, h->nodeid);
		break;
	case FUSE_OPEN:
		do_open(h->unique);
		break;
	case FUSE_READ:
		do_read(h->unique, body);
		break;
	case FUSE_RELEASE:
		answer(h->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET: /* these want no answer */
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(h->unique, ENOSYS, NULL, 0);
	}
}

static void *serve(void *room)
{
	ssize_t n;

	while ((n = read(server.fd, room, ROOM)) > 0 || errno == EINTR)
		if (n > 0)
			handle(room, (struct fuse_in_header *)room + 1);
	CHECK_EQ(errno, ENODEV); /* unmounted */
	return NULL;
}

/* Map the file of a server whose reads wait from a place on. */
static void stall_from(uint64_t at)
{
	static uint64_t room[ROOM / 8];
	char options[80];
	int file;

	server.stalls_at = at;
	server.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	REQUIRE(server.fd >= 0);
	mkdir(FOLDER, 0755);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", server.fd);
	REQUIRE(!mount("stall", FOLDER, "fuse", MS_NOSUID | MS_NODEV, options));
	REQUIRE(!pthread_create(&server.thread, NULL, serve, room));
	file = open(FOLDER "/file", O_RDONLY | O_CLOEXEC);
	REQUIRE(file >= 0);
	server.bytes = mmap(NULL, BULK, PROT_READ, MAP_PRIVATE, file, 0);
	REQUIRE(server.bytes != MAP_FAILED);
	close(file);
}

/* Wait until a read waits. */
static void await_stall(void)
{
	pthread_mutex_lock(&server.lock);
	while (!server.waiting)
		pthread_cond_wait(&server.changed, &server.lock);
	pthread_mutex_unlock(&server.lock);
}

/* Let it go, and all that come. */
static void let_go(void)
{
	pthread_mutex_lock(&server.lock);
	server.stalls_at = UINT64_MAX;
	answer(server.waiting, 0, zeros, server.waiting_size);
	server.waiting = 0;
	pthread_mutex_unlock(&server.lock);
}

static void finish(void)
{
	munmap(server.bytes, BULK);
	CHECK(umount2(FOLDER, 0) == 0);
	pthread_join(server.thread, NULL);
	close(server.fd);
	check_pins();
}

/* A LOAD whose image does not come. */
struct load {
	pthread_t thread;
	int fd;
	int error;
	struct nfcomms_completion out;
};

static void *load_image(void *argument)
{
	struct load *l = argument;
	struct nfcomms_op op = image(server.bytes, IMAGE);

	l->error = call(l->fd, &op, &l->out);
	return NULL;
}

static void begin_load(struct load *l)
{
	stall_from(IMAGE / 2);
	l->fd = client();
	REQUIRE(!pthread_create(&l->thread, NULL, load_image, l));
	await_stall();
}

static void end_load(struct load *l)
{
	let_go();
	pthread_join(l->thread, NULL);
	close(l->fd);
}

CASE(an_image_that_does_not_come)
{
	struct nfcomms_request_load reply;
	struct load l;

	close(fresh());
	begin_load(&l);
	check_device(); /* others start programs meanwhile */
	end_load(&l);
	CHECK_EQ(l.error, 0);
	CHECK_EQ(l.out.status, NFC_OK);
	memcpy(&reply, l.out.payload, sizeof(reply));
	CHECK_EQ(reply.request,
		 NFCOMMS_CONTROL_LOAD); /* the device has seen it */
	CHECK(reply.status != NFC_OK); /* zeros are no program */
	check_device();
	finish();
}

CASE(unbinding_while_an_image_does_not_come)
{
	char device[PATH_MAX];
	struct load l;

	close(fresh());
	find_device(device);
	begin_load(&l);
	unbind(device);
	end_load(&l);
	CHECK_EQ(l.error, 0);
	CHECK_EQ(l.out.status, NFC_ERESET);
	bind_to(device);
	await_node();
	check_device();
	finish();
}

/* Begin a transfer that stalls on its way, with a worker of the driver. */
static int begin_transfer(void)
{
	int fd = fresh();
	struct nfcomms_op op;

	stall_from(LATE);
	op = transfer(NFCOMMS_OP_SEND_IND, program(fd, "sink"), server.bytes,
		      BULK);
	CHECK_EQ(submit(fd, &op, 1), 1);
	await_stall();
	check_device();
	return fd;
}

CASE(bytes_that_come_late)
{
	int fd = begin_transfer();
	struct nfcomms_completion c;

	let_go();
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	CHECK_EQ(c.length, BULK);
	close(fd);
	finish();
}

CASE(closed_before_its_bytes_received)
{
	int fd = begin_transfer();

	close(fd); /* takes the worker out of its wait */
	check_device();
	check_pins();
	let_go();
	finish();
	check_device();
}

// SPDX-License-Identifier: MIT
/*
 * The C path of "nfbench stack": its chunks, through libnfcomms.
 *
 *	PROGRAM ADDRESS CHANNELS BYTES IMAGE
 *
 * Opens the device, starts a loopback process for each channel, and prints "ready".
 * BYTES are the memory of a direction. Then it answers each line of its input:
 *
 *	synchronous SIZE GROUPS MS	a chunk for each channel there, then back,
 *	overlapped SIZE GROUPS MS	one after the other or all at once; GROUPS
 *					times, but none begins after MS milliseconds
 *	loose SIZE CHUNKS BUFFERS	without flow control, by the program of IMAGE
 *
 * by "moved", the groups, and nanoseconds: to the device by the clock, back, to the
 * device of CPU time, back; or by "loose", chunks that came, wrong ones, and nanoseconds.
 * The last number of either is the CPU time of the process until then. An error ends
 * it, with a line on the standard error.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kmod/lib/libnfcomms.h"

enum { MOST_CHANNELS = 64 };

/* The channels and the memory of a group: a chunk for each channel. */
struct rig {
	struct nfcomms_dev *dev;
	uint32_t channels[MOST_CHANNELS];
	unsigned int count;
	size_t bytes;
	char *sent, *got;
	uint64_t groups; /* that were moved; none has the bytes of another */
};

_Noreturn static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void must(int result, const char *what)
{
	if (result < 0)
		fail(what, nfcomms_strerror(result));
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Zeros, from a page on as large objects of Go are: copies of others are slower. */
static char *memory(size_t bytes)
{
	enum { PAGE = 4096 };
	size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
	char *mem = aligned_alloc(PAGE, pages);

	if (!mem)
		fail("memory", strerror(ENOMEM));
	return memset(mem, 0, pages);
}

/* As fillPattern of the Go path. */
static void fill(char *mem, size_t bytes, uint64_t seed)
{
	size_t i, part;
	uint64_t word;

	for (i = 0; i < bytes; i += sizeof(word)) {
		word = ((seed << 40) + i) * UINT64_C(0x9e3779b97f4a7c15);
		part = bytes - i < sizeof(word) ? bytes - i : sizeof(word);
		memcpy(mem + i, &word, part);
	}
}

/* ---- with flow control ---- */

static void open_rig(struct rig *r, const char *address, unsigned int count,
		     size_t bytes)
{
	struct nfcomms_process process;
	unsigned int i;

	if (!count || count > MOST_CHANNELS)
		fail("CHANNELS", "not 1 to 64");
	must(nfcomms_open(address, &r->dev), address);
	for (i = 0; i < count; i++) {
		must(nfcomms_start(r->dev, "loopback", 0, 1, 0, &process), "sta"
									   "rt "
									   "loo"
									   "pba"
									   "c"
									   "k");
		must(nfcomms_subscribe(r->dev, process.first, &r->channels[i]),
		     "subscribe");
	}
	r->count = count;
	r->bytes = bytes;
	r->sent = memory(bytes);
	r->got = memory(bytes);
}

/* Chunks of a group that have memory of their own. */
static size_t room(const struct rig *r, size_t size)
{
	size_t most = r->bytes / size;

	return most < r->count ? most : r->count;
}

static void one_by_one(struct rig *r, char *mem, size_t size, int back)
{
	unsigned int i;
	int rc;

	for (i = 0; i < r->count; i++) {
		char *chunk = mem + i % room(r, size) * size;

		rc = back ? nfcomms_receive_ind(r->dev, r->channels[i], chunk,
						size, NULL) :
			    nfcomms_send_ind(r->dev, r->channels[i], chunk,
					     size, NULL);
		must(rc, back ? "receive" : "send");
	}
}

/* Take the events of so many requests. */
static void take(struct rig *r, unsigned int count)
{
	struct pollfd there = { .fd = nfcomms_fd(r->dev), .events = POLLIN };
	struct nfcomms_event events[MOST_CHANNELS];
	int i, n;

	while (count > 0) {
		n = nfcomms_events(r->dev, events, MOST_CHANNELS);
		must(n, "events");
		if (!n && poll(&there, 1, -1) < 0 && errno != EINTR)
			fail("poll", strerror(errno));
		for (i = 0; i < n; i++)
			must(events[i].result, "transfer");
		count -= (unsigned int)n;
	}
}

static void at_once(struct rig *r, char *mem, size_t size, int back)
{
	struct nfcomms_request all[MOST_CHANNELS];
	unsigned int i;
	int taken;

	for (i = 0; i < r->count; i++)
		all[i] = (struct nfcomms_request){
			.kind = back ? NFCOMMS_RECEIVE_IND : NFCOMMS_SEND_IND,
			.channel = r->channels[i],
			.data = mem + i % room(r, size) * size,
			.size = size,
		};
	taken = nfcomms_submit(r->dev, all, r->count, NULL);
	must(taken, "submit");
	if ((unsigned int)taken < r->count)
		must(nfcomms_submit(r->dev, all + taken, r->count - taken, NULL),
		     "submit");
	take(r, r->count);
}

static void move(struct rig *r, int overlapped, size_t size, long groups,
		 uint64_t ms)
{
	uint64_t wall[2] = { 0 }, cpu[2] = { 0 }, start, busy;
	uint64_t end = now_ns(CLOCK_MONOTONIC) + ms * 1000000;
	size_t used;
	long n = 0;
	int back;

	if (size == 0 || size > r->bytes)
		fail("SIZE", "not as much as there is memory");
	used = room(r, size) * size;
	do {
		fill(r->sent, used, r->groups++);
		memset(r->got, 0, used);
		for (back = 0; back < 2; back++) {
			busy = now_ns(CLOCK_PROCESS_CPUTIME_ID);
			start = now_ns(CLOCK_MONOTONIC);
			(overlapped ? at_once : one_by_one)(
				r, back ? r->got : r->sent, size, back);
			wall[back] += now_ns(CLOCK_MONOTONIC) - start;
			cpu[back] += now_ns(CLOCK_PROCESS_CPUTIME_ID) - busy;
		}
		if (memcmp(r->sent, r->got, used))
			fail("data", "came back changed");
	} while (++n < groups && now_ns(CLOCK_MONOTONIC) < end);
	printf("moved %ld %llu %llu %llu %llu %llu\n", n,
	       (unsigned long long)wall[0], (unsigned long long)wall[1],
	       (unsigned long long)cpu[0], (unsigned long long)cpu[1],
	       (unsigned long long)now_ns(CLOCK_PROCESS_CPUTIME_ID));
}

/* ---- without: by a program that takes chunks before the last were read ---- */

/* The processes of overrun.c. */
struct overrun {
	uint32_t reader; /* channel */
	uint32_t ports[MOST_CHANNELS]; /* of the engine */
	int started;
};

/* As overrun.c has it. */
static uint64_t checksum(const char *mem, size_t size)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325), word;
	size_t i;

	for (i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
		memcpy(&word, mem + i, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
	}
	for (; i < size; i++)
		sum = (sum ^ (unsigned char)mem[i]) * UINT64_C(0x100000001b3);
	return (uint32_t)(sum ^ sum >> 32);
}

static void load(struct nfcomms_dev *dev, const char *path)
{
	static char image[1 << 20];
	char name[NFCOMMS_NAME_SIZE];
	FILE *f = fopen(path, "rb");
	size_t size = f ? fread(image, 1, sizeof(image), f) : 0;

	if (!size || fclose(f))
		fail(path, strerror(errno));
	must(nfcomms_load(dev, image, size, name), "load");
}

static void start_overrun(struct overrun *o, struct rig *r, const char *image)
{
	struct nfcomms_process process;
	uint64_t at;
	unsigned int i;

	load(r->dev, image);
	must(nfcomms_start(r->dev, "overrun.reader", 0, 1, 0, &process), "star"
									 "t");
	must(nfcomms_subscribe(r->dev, process.first, &o->reader), "subscribe");
	must(nfcomms_receive(r->dev, o->reader, &at, sizeof(at)), "address");
	must(nfcomms_start(r->dev, "overrun.engine", 0, r->count, at, &process),
	     "start");
	for (i = 0; i < r->count; i++)
		must(nfcomms_subscribe(r->dev, process.first + i, &o->ports[i]),
		     "subscribe");
	o->started = 1;
}

/* Send so many chunks of a memory at once, from this number on. */
static void send_group(struct rig *r, const struct overrun *o, char *mem,
		       const uint64_t *sums, size_t size, uint64_t first,
		       unsigned int count)
{
	struct nfcomms_request all[MOST_CHANNELS];
	unsigned int i;
	uint64_t word;
	int taken;

	for (i = 0; i < count; i++) {
		word = sums[i] << 32 | (first + i);
		memcpy(mem + i * size, &word, sizeof(word));
		all[i] = (struct nfcomms_request){
			.kind = NFCOMMS_SEND_IND,
			.channel = o->ports[i],
			.data = mem + i * size,
			.size = size,
		};
	}
	for (i = 0; i < count; i += (unsigned int)taken) {
		taken = nfcomms_submit(r->dev, all + i, count - i, NULL);
		must(taken, "submit");
	}
	take(r, count);
}

static void send_loose(struct rig *r, const struct overrun *o, size_t size,
		       uint64_t chunks, unsigned int buffers)
{
	char *mem[] = { r->sent, r->got };
	uint64_t sums[2][MOST_CHANNELS], n, word;
	unsigned int i, v;

	for (v = 0; v < 2; v++) {
		fill(mem[v], buffers * size, v);
		for (i = 0; i < buffers; i++)
			sums[v][i] = checksum(mem[v] + i * size + sizeof(word),
					      size - sizeof(word));
	}
	for (n = 0; n < chunks; n += buffers) {
		v = n / buffers % 2;
		i = chunks - n < buffers ? (unsigned int)(chunks - n) : buffers;
		if (buffers > 1) {
			send_group(r, o, mem[v], sums[v], size, n, i);
			continue;
		}
		word = sums[v][0] << 32 | n;
		memcpy(mem[v], &word, sizeof(word));
		must(nfcomms_send_ind(r->dev, o->ports[0], mem[v], size, NULL),
		     "send");
	}
}

static void loose(struct rig *r, struct overrun *o, size_t size,
		  uint64_t chunks, uint64_t buffers)
{
	uint64_t run[] = { size, chunks, buffers }, found[2], at, start, took;

	if (size < sizeof(at) || !buffers || buffers > r->count ||
	    buffers * size > r->bytes)
		fail("loose", "more than there is memory");
	must(nfcomms_send(r->dev, o->reader, run, sizeof(run)), "run");
	must(nfcomms_receive(r->dev, o->reader, &at, sizeof(at)), "memory");
	start = now_ns(CLOCK_MONOTONIC);
	if (at)
		send_loose(r, o, size, chunks, (unsigned int)buffers);
	took = now_ns(CLOCK_MONOTONIC) - start;
	must(nfcomms_receive(r->dev, o->reader, found, sizeof(found)), "found");
	printf("loose %llu %llu %llu %llu\n", (unsigned long long)found[0],
	       (unsigned long long)found[1], (unsigned long long)took,
	       (unsigned long long)now_ns(CLOCK_PROCESS_CPUTIME_ID));
}

int main(int argc, char **argv)
{
	struct rig r = { 0 };
	struct overrun o = { 0 };
	unsigned long long size, third;
	char line[256], what[32];
	long second;

	if (argc != 5)
		fail("usage", "ADDRESS CHANNELS BYTES IMAGE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_rig(&r, argv[1], (unsigned int)atoi(argv[2]),
		 strtoull(argv[3], NULL, 10));
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%31s %llu %ld %llu", what, &size, &second,
			   &third) != 4)
			fail("command", line);
		if (strcmp(what, "loose")) {
			move(&r, !strcmp(what, "overlapped"), size, second,
			     third);
			continue;
		}
		if (!o.started)
			start_overrun(&o, &r, argv[4]);
		loose(&r, &o, size, (uint64_t)second, third);
	}
	nfcomms_close(r.dev);
	free(r.sent);
	free(r.got);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Code that the guest's C tests share: a client of /dev/nfcommsN by bare
 * ioctls, the device programs that they use, and the oracles. A helper that
 * cannot do its work notes a failure of the running case and returns a value
 * that fails on.
 */
#ifndef RIG_H
#define RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../../firmware/nfc_abi.h"
#include "../../../firmware/test/harness.h"
#include "../../../kmod/uapi/nfcomms.h"

enum {
	PATIENCE_MS = 60000, /* a watchdog: what takes longer hangs */
};

/* The node under test: $NFC_NODE, or /dev/nfcomms0. */
const char *node(void);
/* Open the node of the device's registers with these flags; -1 if that does not work. */
int open_registers(int flags);
/* Open the node; -1 and a failed check if that does not work. */
int client(void);
/* How often client() gave this descriptor. */
unsigned int generation(int fd);
/* End the device's epoch, so that a case starts from nothing; then client(). */
int fresh(void);
/* The same, in a shape; its size is set here. */
int fresh_as(struct nfcomms_reset shape);
/* End the device's epoch and boot the next: 0 or errno. */
int reset(int fd, struct nfcomms_reset shape);

/* An operation with everything else zero. */
struct nfcomms_op operation(uint16_t opcode, uint32_t channel);
/* A transfer of length bytes at a place in memory. */
struct nfcomms_op transfer(uint16_t opcode, uint32_t channel, const void *at,
			   uint64_t length);
/* A LOAD of a program's image. */
struct nfcomms_op image(const void *at, uint64_t length);
/* A message. */
struct nfcomms_op message(uint32_t channel, const void *bytes, uint64_t length);

/* A call for an operation, whose completion comes to a place. */
struct nfcomms_call call_for(const struct nfcomms_op *op,
			     struct nfcomms_completion *out);
/* Make one operation and wait for it: 0 or the ioctl's errno. */
int call(int fd, const struct nfcomms_op *op, struct nfcomms_completion *out);
/* The same for a call that must be accepted: its enum nfc_status. */
uint32_t outcome(int fd, const struct nfcomms_op *op);
/* Hand over operations: how many were taken, or the negated errno. */
int submit(int fd, const struct nfcomms_op *ops, unsigned int count);
/* Wait for one completion; false if none comes within PATIENCE_MS. */
bool reap(int fd, struct nfcomms_completion *out);
/* The id of the first operation of this thread's last submit(). */
uint64_t taken_id(void);
/* Cancel an operation by its id: 0 or errno. */
int cancel(int fd, uint64_t id);
/* Cancel operations from one id up to another: how many there were. */
int cancel_all(int fd, uint64_t from, uint64_t to);
/* Any ioctl: 0 or errno. */
int control(int fd, unsigned long request, void *argument);

/* Start a device program; 0 and its first target, or an enum nfc_status. */
uint32_t start(int fd, const char *name, uint32_t ports, uint32_t *first);
/* Open the channel to a target: its handle, 0 and a failed check if refused. */
uint32_t subscribe(int fd, uint32_t target);
/* start() and subscribe() of a program with one port. */
uint32_t program(int fd, const char *name);
/* Echo a message on a loopback channel: the device and the driver are well. */
void check_alive(int fd, uint32_t loopback);
/* The device's enum nfcomms_state. */
uint32_t state(int fd);
/* The number of its epoch. */
uint32_t epoch(int fd);
/* It is lost, or was and came back by itself: the epoch was this one. */
void check_lost(int fd, uint32_t was);
/* A client of a fresh device, with a loopback channel. */
struct bench {
	int fd;
	uint32_t ch;
};
struct bench setup(void);
/* The channel still works; then the end of the client. */
void teardown(struct bench *b);
/* A new client finds a device that works. */
void check_device(void);
/* Ask a source program for size bytes. */
void ask_source(int fd, uint32_t channel, uint64_t size, uint64_t seed);
uint8_t pattern(uint64_t seed, uint64_t i);

/* Every page that was pinned is not any more. */
void check_pins(void);
/* Pinned now, in pages, by /proc/vmstat. */
long pinned(void);
/* Let go since the machine began; what a processor did last may not be counted yet. */
long released(void);

/* Memory that is the caller's own, page-aligned and filled with a byte. */
uint8_t *pages(size_t size, int fill);
/* The same, and none of it a huge page. */
uint8_t *small_pages(size_t size, int fill);
void free_pages(uint8_t *p, size_t size);

/* This thread, on the first processor; before all others there if it is urgent. */
void on_one_processor(bool urgent);
/* As it was before. */
void on_all_processors(void);

/* Run a function in a child process; the child exits with what it returns. */
pid_t child(int (*fn)(void *), void *argument);
/* Wait for a child; its wait status, -1 if it does not end. */
int wait_child(pid_t pid);

uint64_t now_ns(void);
/* A long case is not stuck: put the harness's watchdog off. */
void still_alive(void);
/* Say in the kernel's log how far a case is that takes minutes. */
void progress(uint64_t done, uint64_t all);
/* A small generator, so that a seed repeats a run. */
uint64_t next_random(uint64_t *state);
/* From the argument of the program, or the clock; printed. */
uint64_t seed_for(const char *what);

#endif

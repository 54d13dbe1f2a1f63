/* SPDX-License-Identifier: MIT */
/*
 * libnfcomms: channels to processes on a device, from C.
 *
 * A channel's far end is a target, a process on the device. A message of 0 to
 * 56 bytes and a transfer of any size are each a rendezvous. A call that
 * returns 0 has been delivered; one that returns an error has not and will not
 * be. The only exception is a message that ends with -ENODEV: the outcome is
 * unknown.
 *
 * Every call returns 0 or a positive result, or a negative errno; the meaning
 * of each stands at nfcomms_strerror(). All calls are safe from any thread.
 * Memory given to a call is the device's until the call returns, or its event
 * was taken. It must not be unmapped, and bytes written to it may or may not be
 * sent.
 *
 * A signal that is handled takes a blocking call's operation back, and the call
 * returns -EINTR: nothing was delivered (also with SA_RESTART). Where a call has
 * to end at a certain time use the asynchronous calls further down, whose events
 * arrive through one pollable descriptor.
 */
#ifndef LIBNFCOMMS_H
#define LIBNFCOMMS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NFCOMMS_API __attribute__((visibility("default")))

enum {
	NFCOMMS_MESSAGE_MAX = 56, /* bytes in a message */
	NFCOMMS_NAME_SIZE = 24, /* room for a program's name and its NUL */
};

/*
 * An open device. Processes that it starts and channels that it subscribes end
 * with it.
 */
struct nfcomms_dev;

/*
 * Open a device: "dev:0" or "0" is /dev/nfcomms0, and a path is that of a device
 * node. "sim:" and "shm:/run/nfcomms/0.sock" need no kernel module: a simulated
 * device in this process, and one of another process that many share; both take
 * options, "sim:?islands=4" (docs/c-library.md). "vfio-user:/run/nfsim/card.sock" is a
 * PCI function that another process serves, and this one drives.
 *
 * "dev:0?busy-poll=20us": calls, and nfcomms_events() that finds none, poll for
 * so long before they sleep or return. That saves an interrupt's thread and a
 * wake-up, and takes a processor meanwhile; 1us..10000us, at most what the
 * device's busy_poll_max allows. -EOPNOTSUPP: the module is older.
 *
 * -ENOENT: no such device, or the module is not loaded (modprobe nfcomms).
 * -EACCES: not in the group nfcomms-dev. -ENOTTY: another kind of file.
 * -ENOEXEC: the module speaks another interface. -EINVAL: no such scheme or
 * option, or what "shm:" names is no socket. -ECONNREFUSED: no device process
 * serves the socket. -ETIMEDOUT: it does not answer. -ELIBACC:
 * libnfcomms-umod.so.1, which serves "sim:" and "shm:", cannot be loaded.
 * -EOPNOTSUPP: this process was forked from one that had opened such a device.
 */
NFCOMMS_API int nfcomms_open(const char *address, struct nfcomms_dev **dev);

/*
 * Take over an open descriptor of a device node, for instance one that another
 * process passed. The library closes it with the device; after an error it stays
 * the caller's. The file must be O_NONBLOCK for nfcomms_events() to return
 * without events.
 */
NFCOMMS_API int nfcomms_open_fd(int fd, struct nfcomms_dev **dev);

/*
 * Close a device. Operations end, channels close, processes stop. No other
 * thread may be in a call. NULL is allowed. The child of a fork must close what
 * it inherited; all other calls of it end with -ENODEV where no module is used.
 */
NFCOMMS_API void nfcomms_close(struct nfcomms_dev *dev);

/* A description of the device; it changes with a reset only. */
struct nfcomms_description {
	uint32_t abi; /* of the firmware, major << 16 | minor */
	uint32_t epoch; /* counts resets */
	uint32_t channels; /* target ids are below this */
	uint32_t mailboxes;
	uint32_t islands;
	uint32_t slots; /* per ring */
	uint32_t window; /* gather lists in flight per transfer */
	uint32_t contexts; /* processes the device can run */
	uint32_t can_load; /* nfcomms_load() works */
	uint32_t max_operations; /* in flight per open device */
	uint64_t max_transfer; /* bytes */
	uint64_t memlock_limit; /* bytes this process may pin; ~0: no limit */
	uint64_t memlock_used; /* bytes it has pinned */
	char driver[24]; /* version of the kernel module, or "sim", "shm", "vfio" */
};

NFCOMMS_API int nfcomms_describe(struct nfcomms_dev *dev,
				 struct nfcomms_description *out);

/* The device's last heartbeat. */
struct nfcomms_heartbeat {
	uint64_t beat; /* counts up */
	uint64_t age_ns; /* since the device wrote it */
	uint32_t diagnostic; /* health of the parts, see nfc_abi.h */
	uint32_t processes; /* running */
	uint64_t messages; /* taken from the host */
	uint64_t bytes; /* moved by the DMA engines */
	uint64_t parked; /* requests waiting for a target */
};

/*
 * -EHOSTDOWN: the device broke the protocol and is out of use until a reset.
 * -ENODEV: it is silent, in reset, or removed; out is filled all the same.
 */
NFCOMMS_API int nfcomms_health(struct nfcomms_dev *dev,
			       struct nfcomms_heartbeat *out);

/*
 * Fence the device, end every operation of all its users with -ENODEV and boot
 * it anew. Old channels stay unusable. -EPERM without CAP_SYS_ADMIN, where it
 * concerns others: with "sim:" and "shm:" only this process is a user.
 */
NFCOMMS_API int nfcomms_reset(struct nfcomms_dev *dev);

/* A process on the device; port i has target first + i. */
struct nfcomms_process {
	uint64_t id;
	uint32_t first;
	uint32_t targets;
};

/*
 * Run a program as a process with so many targets, from first on; 0 lets the
 * device choose. -ENOENT: no such program. -EBUSY: a target is held by another
 * process. -ENOMEM: no context is free.
 */
NFCOMMS_API int nfcomms_start(struct nfcomms_dev *dev, const char *program,
			      uint32_t first, uint32_t targets,
			      uint64_t argument, struct nfcomms_process *out);

/* Stop a process and wait until it has. -EINVAL: not one of this device's. */
NFCOMMS_API int nfcomms_stop(struct nfcomms_dev *dev, uint64_t process);

/*
 * Load the programs of an image; name takes the first one's. -ENOEXEC: built for
 * another ABI. -EOPNOTSUPP: the device cannot. -EPERM without CAP_SYS_ADMIN.
 */
NFCOMMS_API int nfcomms_load(struct nfcomms_dev *dev, const void *image,
			     size_t size, char name[NFCOMMS_NAME_SIZE]);

/* The name of the program of this index; -ENOENT behind the last one. */
NFCOMMS_API int nfcomms_program(struct nfcomms_dev *dev, uint32_t index,
				char name[NFCOMMS_NAME_SIZE]);

/*
 * Open the channel to a target and return its number, which stands for it in
 * the calls below. -ENXIO: no process holds the target. -EBUSY: subscribed
 * already.
 */
NFCOMMS_API int nfcomms_subscribe(struct nfcomms_dev *dev, uint32_t target,
				  uint32_t *channel);

enum nfcomms_half {
	NFCOMMS_SENDING = 1 << 0,
	NFCOMMS_RECEIVING = 1 << 1,
};

/*
 * Close halves of a channel. Calls that wait there end with -EPIPE. The channel
 * ends when both halves are closed; closing a closed half is no error.
 */
NFCOMMS_API int nfcomms_unsubscribe(struct nfcomms_dev *dev, uint32_t channel,
				    unsigned int halves);

/* Where a transfer stopped, or what it met. */
struct nfcomms_failure {
	uint64_t processed; /* bytes moved before, though not delivered */
	uint64_t outstanding; /* bytes that were still to move */
	uint64_t peer_size; /* -EMSGSIZE: the device's */
	uint64_t limit; /* -ENOMEM: bytes that may be pinned; -E2BIG: of a transfer */
	uint32_t list; /* gather list that failed */
	uint32_t entry; /* entry in it */
};

/*
 * Give a message of at most NFCOMMS_MESSAGE_MAX bytes; 0 once the target took it.
 * -E2BIG: too long. -EPIPE: closed. -EPROTOTYPE: the target wants a transfer.
 */
NFCOMMS_API int nfcomms_send(struct nfcomms_dev *dev, uint32_t channel,
			     const void *message, size_t size);

/* The same if the target waits for it now, else -EAGAIN: nothing was sent. */
NFCOMMS_API int nfcomms_try_send(struct nfcomms_dev *dev, uint32_t channel,
				 const void *message, size_t size);

/*
 * Take a message and return its length. -E2BIG: it is longer than size.
 * -EPROTOTYPE: a transfer is offered. Either stays offered. -EBUSY: another
 * call receives.
 */
NFCOMMS_API int nfcomms_receive(struct nfcomms_dev *dev, uint32_t channel,
				void *message, size_t size);

/* The same if one is offered now, else -EAGAIN. */
NFCOMMS_API int nfcomms_try_receive(struct nfcomms_dev *dev, uint32_t channel,
				    void *message, size_t size);

/*
 * Give a message as a question, take its answer, and return the length of that. A
 * target that answers by channel_reply does both by one slot each way; the answer of
 * another is the message that it sends next.
 *
 * -EINTR, -ECANCELED, -EPIPE, -E2BIG, -EPROTOTYPE: as of nfcomms_send(), no process
 * took the question. -ENODATA: one took it, and there is no answer: it closed, or a
 * signal ended the call, and it learns that nobody waits. -EINPROGRESS: one took it as
 * a message, whose answer may still come as one. -E2BIG also where the answer is longer
 * than room: it is dropped, or stays offered if it is a message.
 */
NFCOMMS_API int nfcomms_call(struct nfcomms_dev *dev, uint32_t channel,
			     const void *question, size_t size, void *answer,
			     size_t room);

/*
 * Give a transfer; 0 once the target holds all bytes. The device reads them
 * itself. failure may be NULL. -EMSGSIZE: the target wants another size.
 * -ENOMEM: more than may be locked (ulimit -l), or the device is full. -EFAULT:
 * not all of it can be read. -EIO: DMA could not reach a page.
 */
NFCOMMS_API int nfcomms_send_ind(struct nfcomms_dev *dev, uint32_t channel,
				 const void *data, uint64_t size,
				 struct nfcomms_failure *failure);

/*
 * Take a transfer of exactly this size; errors as of nfcomms_send_ind(). An
 * offer of another size (-EMSGSIZE), or a message (-EPROTOTYPE), stays offered.
 */
NFCOMMS_API int nfcomms_receive_ind(struct nfcomms_dev *dev, uint32_t channel,
				    void *data, uint64_t size,
				    struct nfcomms_failure *failure);

/*
 * Have memory pinned and mapped for the device once, as a region. Transfers that name
 * it do no work on memory of their own. It must be writable. A region has the pages
 * that are there now, and belongs to the device that is open, also in a child of a fork.
 * Once some of its memory is unmapped, or the process ends, it is one no more. Regions
 * stay over a reset and end with the device.
 *
 * -ENOMEM: more than may be locked (ulimit -l). -ENOSPC: 1,024 of this device are
 * there, or 8,192 of this user. -EFAULT: not all of it is memory that can be written.
 * -EIO: it cannot be mapped for the device. -EINVAL: no bytes, or more than 2^36.
 * -ENOTTY: the kernel module is older. -EBUSY: a kernel that debugs DMA counts no more
 * mappings of this memory.
 */
NFCOMMS_API int nfcomms_register(struct nfcomms_dev *dev, void *data,
				 uint64_t size, uint32_t *region);

/*
 * The same for a dma-buf, from a byte of it on, where a page begins: the device
 * reaches the memory of another one where that is. The descriptor may be closed
 * afterwards.
 *
 * -EBADF, -EINVAL: no descriptor, no dma-buf, or it has less bytes. -EACCES: it can
 * only be read. -EOPNOTSUPP with "sim:" and "shm:".
 */
NFCOMMS_API int nfcomms_import(struct nfcomms_dev *dev, int fd, uint64_t offset,
			       uint64_t size, uint32_t *region);

/*
 * End a region: the device does not reach it any more. -EBUSY: a transfer uses it.
 * -ENOENT: there is none; perhaps its memory was unmapped.
 */
NFCOMMS_API int nfcomms_unregister(struct nfcomms_dev *dev, uint32_t region);

/*
 * nfcomms_send_ind() and nfcomms_receive_ind() of bytes of a region, from an offset on.
 * -ENOENT: it is none. -ERANGE: it has not all of them.
 */
NFCOMMS_API int nfcomms_send_region(struct nfcomms_dev *dev, uint32_t channel,
				    uint32_t region, uint64_t offset,
				    uint64_t size,
				    struct nfcomms_failure *failure);
NFCOMMS_API int nfcomms_receive_region(struct nfcomms_dev *dev,
				       uint32_t channel, uint32_t region,
				       uint64_t offset, uint64_t size,
				       struct nfcomms_failure *failure);

/*
 * Channels between hosts of a device, with "sim:" and "shm:" alone: else these calls are
 * -EOPNOTSUPP. A host listens under a name, others dial it, and the channel is like any.
 * Listeners and memory end with the device.
 *
 * nfcomms_listen(): -EINVAL: no name, which is a letter and up to 22 letters, digits, dots,
 * underscores and hyphens. -EBUSY: another listener has it. -ENOMEM: 8 listeners are there.
 * nfcomms_accept() waits for the next channel. -EPIPE, -ENOENT: the listener ended.
 * nfcomms_dial(): -ENXIO: no listener of this user has the name.
 */
NFCOMMS_API int nfcomms_listen(struct nfcomms_dev *dev, const char *name,
			       uint32_t *listener);
NFCOMMS_API int nfcomms_unlisten(struct nfcomms_dev *dev, uint32_t listener);
NFCOMMS_API int nfcomms_accept(struct nfcomms_dev *dev, uint32_t listener,
			       uint32_t *channel);
NFCOMMS_API int nfcomms_dial(struct nfcomms_dev *dev, const char *name,
			     uint32_t *channel);

/* Memory that a host may give to another one. */
struct nfcomms_memory {
	void *data;
	uint64_t size; /* bytes */
	uint32_t region; /* for nfcomms_give(), transfers and nfcomms_unregister() */
};

/* New memory, of zeros. -EINVAL: no bytes, or more than 2^36. */
NFCOMMS_API int nfcomms_alloc(struct nfcomms_dev *dev, uint64_t size,
			      struct nfcomms_memory *out);

/*
 * Give memory to the host at the far end of a channel, whose nfcomms_take() returns it:
 * its bytes stay where they are. With 0 it is that host's; the region ends here, the
 * program must not touch the bytes, and transfers of them are -EREMOTE. With an error it
 * is still here, as it was (docs/semantics.md, S77).
 *
 * -ENOENT: no such channel or region. -EBUSY: a transfer uses it, or it is being given.
 * -EOPNOTSUPP: memory of nfcomms_register(), a channel to a process, hosts that share no
 * memory. -EPROTOTYPE: the far host received it as a message. -EINTR: a signal ended the
 * call; the memory is here.
 */
NFCOMMS_API int nfcomms_give(struct nfcomms_dev *dev, uint32_t channel,
			     uint32_t region);

/*
 * Take the memory that the far host gives. -EPROTOTYPE: it offers something else, which
 * stays offered. -ECONNABORTED: it took the memory back.
 */
NFCOMMS_API int nfcomms_take(struct nfcomms_dev *dev, uint32_t channel,
			     struct nfcomms_memory *out);

/* The message or transfer that the device offers on a channel. */
struct nfcomms_offer {
	uint64_t size; /* bytes */
	uint32_t indirect; /* 1: a transfer, 0: a message */
};

/* Wait for the device's next offer and look at it; it stays offered. */
NFCOMMS_API int nfcomms_next(struct nfcomms_dev *dev, uint32_t channel,
			     struct nfcomms_offer *out);

/*
 * Asynchronous calls. nfcomms_submit() hands operations over and does not wait.
 * Each gives exactly one event, which nfcomms_events() takes; the descriptor
 * polls as readable while there are some.
 */
enum nfcomms_kind {
	NFCOMMS_SEND = 1, /* the message at data */
	NFCOMMS_RECEIVE = 2, /* a message, in the event */
	NFCOMMS_SEND_IND = 3, /* the transfer at data */
	NFCOMMS_RECEIVE_IND = 4, /* a transfer to data */
	NFCOMMS_NEXT = 5, /* look at the next offer */
	NFCOMMS_CLOSE = 6, /* the halves in size, enum nfcomms_half */
};

struct nfcomms_request {
	uint32_t kind; /* enum nfcomms_kind */
	uint32_t channel;
	uint64_t token; /* the caller's: is returned in the event, and may repeat */
	void *data; /* not written by a send; NULL with a region */
	uint64_t size; /* bytes */
	uint64_t offset; /* in the region */
	uint32_t region; /* that has the bytes of a transfer, or 0 */
	uint32_t reserved; /* zero */
};

struct nfcomms_event {
	uint64_t token; /* of the request */
	uint64_t id; /* of the operation, as nfcomms_submit() returned it */
	uint32_t kind;
	uint32_t channel;
	int32_t result; /* 0, or a negative errno; -ECANCELED: cancelled */
	uint32_t indirect; /* NFCOMMS_NEXT: a transfer is offered */
	uint64_t size; /* bytes received or offered */
	struct nfcomms_failure failure;
	unsigned char message[NFCOMMS_MESSAGE_MAX];
	uint32_t epoch; /* of the device that it was in, see nfcomms_describe() */
	uint32_t reserved;
};

/* The descriptor to poll. It stays the library's. */
NFCOMMS_API int nfcomms_fd(const struct nfcomms_dev *dev);

/*
 * Hand over count requests, in their order, and return how many were taken. ids has
 * room for count numbers, by which nfcomms_cancel() names the operations that were
 * taken, or is NULL; a device gives no number twice.
 * With less than count the next one is at fault, and handing that over first
 * gives its error: -EINVAL, -E2BIG, -ENOENT (no such channel), -EAGAIN (too many
 * in flight).
 */
NFCOMMS_API int nfcomms_submit(struct nfcomms_dev *dev,
			       const struct nfcomms_request *requests,
			       unsigned int count, uint64_t *ids);

/*
 * Take at most max events that are there and return how many: 0 if there is
 * none. -ENODEV: the device is lost and the last event was taken.
 */
NFCOMMS_API int nfcomms_events(struct nfcomms_dev *dev,
			       struct nfcomms_event *events, unsigned int max);

/*
 * Take back an operation: one that was not taken by the target is withdrawn, one
 * that moves is aborted. Does not wait: the event has the result. -ENOENT: it has
 * ended, or there was none.
 */
NFCOMMS_API int nfcomms_cancel(struct nfcomms_dev *dev, uint64_t id);

/*
 * The meaning of a result, in English. Beside those named above:
 *
 *	-EINVAL		a NULL for the device or for the place of a result
 *	-EFAULT		memory that is not there
 *	-ETIMEDOUT	the target was not ready in time
 *	-ERANGE		outside device memory
 *	-EPROTO		the device reports that the host broke the protocol
 *	-ECONNABORTED	transfer aborted
 *	-ETIME		transfer aborted because the device did not move it on
 *	-ECANCELED	withdrawn
 */
NFCOMMS_API const char *nfcomms_strerror(int result);

/* ---- rings between processes: no device takes part ---- */

/*
 * A ring of packets in memory that two processes share (docs/ring.md); package
 * ring is the same in Go, and each may be either side of it. One process creates
 * it, whose threads may take sides as well. One thread at a time uses a side.
 * Calls take a time-out in milliseconds, negative for none, and end with
 * -ETIMEDOUT, or with -EINTR by a signal: nothing happened then.
 *
 * -ECONNRESET: the other side, or the creator of the ring, died. -EPROTO: it
 * wrote what cannot be. Both are for good.
 */
struct nfcomms_ring;

enum nfcomms_ring_role {
	NFCOMMS_RING_WRITE = 0,
	NFCOMMS_RING_READ = 1,
};

enum {
	NFCOMMS_RING_NAME_MAX = 64, /* bytes */
};

struct nfcomms_ring_owner;

struct nfcomms_ring_config {
	uint64_t packets; /* at least 3; 0: 61. It holds one less */
	uint64_t packet_size; /* bytes, a multiple of the page; 0: 8192 */
	int prewarm; /* not 0: touch all memory now */
};

/*
 * Make a ring under a name of 1 to 64 letters, digits and signs but / and @, and
 * serve it from a thread of the library until it is destroyed. Without config it
 * is that of zeros. -EEXIST: this user has one of that name.
 */
NFCOMMS_API int nfcomms_ring_create(const char *name,
				    const struct nfcomms_ring_config *config,
				    struct nfcomms_ring_owner **owner);
/*
 * End it: sides that are attached fail with -ECONNRESET. Nothing of it is left.
 * NULL is allowed.
 */
NFCOMMS_API void nfcomms_ring_destroy(struct nfcomms_ring_owner *owner);

/*
 * Attach to the ring of that name of this user. -ENOENT: there is none. -EBUSY:
 * the role is taken. -EACCES: it is another user's. -EPROTONOSUPPORT: another
 * version.
 */
NFCOMMS_API int nfcomms_ring_attach(const char *name,
				    enum nfcomms_ring_role role, int timeout_ms,
				    struct nfcomms_ring **ring);
/*
 * Give the side up: a reader gets -ENODATA after the last packet, a writer
 * -EPIPE. NULL is allowed.
 */
NFCOMMS_API void nfcomms_ring_close(struct nfcomms_ring *ring);
/* Make all of its memory present in this process, as prewarm does for the creator. */
NFCOMMS_API int nfcomms_ring_prewarm(struct nfcomms_ring *ring);
/* The most bytes of a packet. */
NFCOMMS_API size_t nfcomms_ring_room(const struct nfcomms_ring *ring);

/*
 * The next packet, to be written in place; never waits. NULL for a reader, and
 * for a side that is of no use any more.
 */
NFCOMMS_API void *nfcomms_ring_reserve(struct nfcomms_ring *ring);
/* Publish the first length bytes of it; waits while the ring is full. */
NFCOMMS_API int nfcomms_ring_commit(struct nfcomms_ring *ring, size_t length,
				    int timeout_ms);
/* Wait until the reader has released every packet. */
NFCOMMS_API int nfcomms_ring_flush(struct nfcomms_ring *ring, int timeout_ms);

/*
 * Wait for the next packet and look at it in place; the same until it is
 * released. It stays valid until the next peek after that.
 */
NFCOMMS_API int nfcomms_ring_peek(struct nfcomms_ring *ring, const void **packet,
				  size_t *length, int timeout_ms);
NFCOMMS_API void nfcomms_ring_release(struct nfcomms_ring *ring);

#ifdef __cplusplus
}
#endif

#endif /* LIBNFCOMMS_H */

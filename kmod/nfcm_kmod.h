/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The driver's own structures, and their locks:
 *
 *	order	lock			guards
 *	1	nfcm_dev.epoch_mutex	start and end of an epoch
 *	1	nfcm_import.lock	its attachment; the exporter's locks are below
 *	2	nfcm_mailbox.lock	the rings of a mailbox, and every channel
 *					and operation that belongs to it
 *	leaf	nfcm_dev.epoch_lock	nfcm_dev.epoch, .state, .files
 *	leaf	nfcm_dev.imports_lock	nfcm_dev.imports, references to them
 *	leaf	nfcm_file.regions	the file's regions; also below epoch_lock
 *	leaf	nfcm_file.lock		completions; also below epoch_lock
 *	leaf	nfcm_file.event_lock	its eventfd; also below epoch_lock
 *	leaf	nfcm_file.process_lock	processes
 *	leaf	nfcm_controller.lock	the queues of control requests
 *	leaf	nfcm_watch.lock		the last heartbeat
 *	leaf	pool_lock		workers that pin, charged memory
 *	leaf	workers_lock		what is given to the threads that pin; also below
 *					pool_lock
 *	leaf	users_lock		users; also below nfcm_controller.lock
 *
 * Functions assert what their callers hold. nfcm_mailbox_unlock() completes what
 * ended while it was held. Nobody holds two mailboxes.
 */
#ifndef NFCM_KMOD_H
#define NFCM_KMOD_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/dim.h>
#include <linux/interrupt.h>
#include <linux/iosys-map.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "nfcm_core.h"
#include "nfcm_half.h"
#include "nfc_pci.h"
#include "nfcm_memory.h"
#include "nfcm_word.h"
#include "uapi/nfcomms.h"

#if BITS_PER_LONG != 64
#error "slot headers are stored in one piece: this needs a 64-bit kernel"
#endif

#define NFCM_NAME "nfcomms"
#define NFCM_MODULE_VERSION "0.1.0"

enum nfcm_sizes {
	NFCM_ROOM_MS = 4, /* to the next tick, while a half waits for room */
	NFCM_HOLDOFF_MAX = 10000, /* microseconds */
	NFCM_HOLDOFF_STEPS = 4, /* of adaptive moderation, each twice the one before */
	NFCM_BUSY_POLL_MAX = 10000, /* microseconds */
	NFCM_WATCHDOG_MS_MAX = 3600000,
	NFCM_OPERATIONS_MAX = 1 << 20,
	NFCM_BATCH = 32, /* messages taken in a row with the mailbox locked */
};

struct eventfd_ctx;
struct nfcm_op;
struct nfcm_file;
struct nfcm_epoch;
struct nfcm_channel;

/* Which list or half an operation is in; under the mailbox once it has a channel. */
enum nfcm_place {
	NFCM_PLACE_NEW,
	NFCM_PLACE_QUEUE, /* in half->queue */
	NFCM_PLACE_HALF, /* is half->op */
	NFCM_PLACE_ARMED,
	NFCM_PLACE_CLOSING,
	NFCM_PLACE_CONTROL, /* under nfcm_controller.lock */
	NFCM_PLACE_OVER,
};

/*
 * One operation. It is allocated together with its completion, so that
 * completing never fails. References: one of the protocol until ->end() ran,
 * and one of each lookup.
 */
struct nfcm_op {
	refcount_t ref;
	atomic_t holds; /* the end, a pinning, chunks under way; at 0 it is reported */
	struct list_head node; /* half's queue, armed, closers, mailbox->ended, file->done */
	struct list_head behind; /* of a control request: its file's next ones */
	struct list_head pin_node; /* mailbox->pinning */
	struct nfcm_file *file; /* NULL: the driver's own */
	struct nfcm_channel *ch; /* NULL: SUBSCRIBE, CONTROL */
	void (*end)(struct nfcm_op *op); /* report; process context, no locks */
	u64 length;
	u64 timeout_ns;
	u32 epoch; /* of SUBSCRIBE and CONTROL: the only one to start in; 0: any */
	u32 target; /* of SUBSCRIBE */
	u64 arm; /* of REFUSE: the id of an ARM */
	u16 opcode;
	u16 flags;
	u8 place; /* enum nfcm_place */
	bool called; /* NFCOMMS_IOC_CALL waits for it */
	bool cancelled; /* of a control request: it is not tried again */
	bool moving; /* the target accepted the transfer */
	bool stop_sent; /* STOP: the device is stopping the process */
	bool detached; /* STOP at a file's end: nobody waits */
	u32 cause; /* enum nfc_status that it was stopped with; 0: it was not */
	int cause_error; /* errno beside cause */
	unsigned long again; /* STOP: when it is sent again, in jiffies */
	u32 tries; /* STOP: how often it was sent while nobody waits */
	u32 probes; /* how often the offer was recalled to see if the device has it */
	ktime_t deadline; /* of the offer, if timeout_ns is not 0 */
	struct completion done;
	struct nfcm_pins pins;
	union { /* the record that is read */
		struct {
			struct nfcomms_completion c; /* payload: also what is sent */
			struct nfcomms_stamps stamps;
		};
		struct nfcomms_record record;
	};
};

/* One mailbox: a pair of rings. */
struct nfcm_mailbox {
	spinlock_t lock; /* see the top */
	struct nfcm_epoch *epoch;
	u32 index;
	u32 island;
	u32 shift; /* log2 of the slots of a ring */
	bool dead; /* the area must not be touched any more */
	bool published; /* slots were put: check if the island sleeps */
	bool recheck; /* a park word was set: drain once more */
	void __iomem *h2d;
	struct iosys_map d2h; /* this and below: in the BAR, or epoch->host_area */
	struct iosys_map h2d_head;
	struct iosys_map d2h_head;
	struct iosys_map asleep;
	u64 tail; /* slots put */
	u64 consumed; /* of those, by the device, as last read */
	u64 taken; /* slots taken */
	u32 row; /* … since it was locked, … */
	u32 longest_row; /* … and the most ever */
	u64 reported; /* slots that the device may reuse: the value of d2h_head */
	u64 stuck; /* consumed at the last tick with halves that wait for room … */
	u32 stuck_ms; /* … and for how long it has not changed */
	u64 clock_ms; /* sum of the watch's ticks */
	u64 offered; /* halves in offers … */
	u64 unvisited; /* … and those that the present pass has yet to visit */
	struct list_head moving; /* halves whose transfers must move on */
	struct list_head offers; /* halves that wait for their target */
	struct list_head channels;
	struct list_head room[2]; /* halves that wait for room; 0: urgent */
	struct list_head escalations;
	struct list_head ended; /* operations to finish at unlock */
	struct list_head pinning; /* operations to pin pages for at unlock */
	struct list_head trimmed; /* chunks to unmap at unlock */
	struct list_head retired; /* channels that left the table */
} ____cacheline_aligned_in_smp;

/* The heartbeat, and everything else that needs time to pass. */
struct nfcm_watch {
	struct delayed_work work;
	spinlock_t lock; /* guards the rest */
	struct nfc_heartbeat last;
	ktime_t seen; /* when last.beat was seen to have changed */
	u64 written; /* when the device wrote it, in ns of ktime_get_ns() */
	u64 looked; /* when the heartbeat was read last */
	struct nfcm_clock clock;
	ktime_t tick; /* when work ran last */
	u32 blank; /* samples without a new beat since then */
	u64 heartbeats; /* that were seen, whatever the device's numbers are */
	bool dead; /* the area must not be touched any more */
	bool kicked; /* work was scheduled ahead of its time */
};

/* The search for offers that the device lost. Only the watch's work uses it. */
struct nfcm_audit {
	u32 ms; /* since the last comparison */
	u32 spent_ms; /* since the last pass … */
	u32 samples; /* … comparisons in that time, … */
	u32 few; /* … and of those at which the device had too few offers */
	bool probing; /* a pass is under way */
};

/* The client of the control channel: one request at a time. */
struct nfcm_controller {
	struct work_struct work;
	spinlock_t lock; /* guards the fields down to ch */
	bool running; /* work is queued or runs; it has a reference */
	struct list_head queue; /* each file's next request, in turn … */
	struct list_head later; /* STOPs to send again */
	struct list_head processes; /* of files, until they have ended */
	struct nfcm_op *current_op;
	struct nfcm_channel *ch;
	wait_queue_head_t wait; /* an operation ended, began or was cancelled */
	struct nfcm_op send, image,
		reply; /* the driver's own; only work uses them */
	u32 request;
};

/* One epoch of the device, from boot to reset. */
struct nfcm_epoch {
	struct kref ref;
	struct nfcm_dev *dev;
	struct nfcm_layout layout;
	void *host_area; /* what the device writes, with NFC_CAP_HOST_RINGS, until the fence */
	dma_addr_t host_area_at;
	struct iosys_map beat;
	struct iosys_map park; /* words of the channels */
	atomic_t down; /* enum nfc_status it ended with; 0: it has not */
	bool lost; /* the device ended it; valid once down is not 0 */
	struct work_struct fence;
	struct completion quiet; /* DMA is fenced, every operation has ended */
	struct xarray channels; /* by id; inserts without, the rest under the mailbox */
	struct nfcm_watch watch;
	struct nfcm_audit audit;
	struct nfcm_controller control;
	u32 mailboxes;
	struct nfcm_mailbox mailbox[];
};

struct nfcm_vector {
	struct nfcm_dev *dev;
	u32 index;
	int irq;
	atomic_t burst; /* interrupts since the thread last began */
	bool masked;
	atomic64_t count; /* interrupts since the driver took the device … */
	u64 messages; /* … and what they brought; only its thread adds */
	struct dim dim; /* what moderation measures; profile_ix is the step */
	u32 holdoff; /* microseconds that the device has; under epoch_mutex */
	wait_queue_head_t wait; /* administrators who wait for the next one */
	char name[24];
};

enum nfcm_counter {
	NFCM_COUNT_INTERRUPTS,
	NFCM_COUNT_SPURIOUS,
	NFCM_COUNT_DOORBELLS,
	NFCM_COUNT_DROPPED,
	NFCM_COUNT_FAULTS,
	NFCM_COUNT_RESETS,
	NFCM_COUNT_LISTS,
	NFCM_COUNT_REPEATED,
	NFCM_COUNT_PINNED, /* bytes now */
	NFCM_COUNT_PINS, /* parts of transfers */
	NFCM_COUNT_BUSY_POLLED, /* waits */
	NFCM_COUNTERS,
};

/* Limits of a device and its files; writable in sysfs. */
struct nfcm_limits {
	u32 holdoff; /* microseconds, at most if it adapts; the device keeps it … */
	u32 watchdog_timeout_ms; /* … and this */
	u32 max_operations; /* of a file, in flight or unread */
	u32 cancel_timeout_ms;
	u32 heartbeat_timeout_ms;
	u32 heartbeat_misses;
	u32 stall_timeout_ms;
	u32 busy_poll_max; /* microseconds of a wait */
	bool adaptive; /* each vector's hold-off follows its load */
	bool recovery; /* it is reset when it is lost or at fault */
	bool register_access; /* administrators reach its registers */
};

/* One PCI function. Freed when it is removed and the last file is closed. */
struct nfcm_dev {
	struct device dev;
	struct cdev cdev;
	struct miscdevice registers; /* the node for administrators */
	char registers_name[24];
	struct pci_dev *pdev;
	void __iomem *regs;
	void __iomem *area;
	u64 room; /* bytes of BAR 2 */
	u32 capabilities; /* enum nfc_pci_capability */
	int minor;
	u32 vectors;
	struct nfcm_limits limits;
	struct nfcm_vector vector[NFC_VECTORS_MAX];

	struct mutex epoch_mutex; /* one start or end of an epoch at a time, and the next three */
	bool rests; /* it was taken down: no recovery */
	bool away; /* the bus resets the function, or it sleeps: up follows … */
	unsigned long error_at; /* jiffies when an error took it away: recovery may fail; 0: none */
	spinlock_t epoch_lock; /* guards epoch, state, files */
	struct nfcm_epoch *epoch; /* NULL before the first */
	u32 state; /* enum nfcomms_state */
	struct pci_saved_state *settings; /* config space when it last started */
	struct delayed_work recover; /* after an epoch that failed */
	bool removed; /* for good: no register is touched any more */
	atomic_t mapped; /* chunks mapped for DMA, or about to be */

	atomic64_t count[NFCM_COUNTERS];
	struct dentry *debugfs;
	struct list_head files; /* open files */
	spinlock_t imports_lock;
	struct list_head imports; /* dma-bufs that are mapped */
};

/* A process that a file started. */
struct nfcm_process {
	struct list_head node; /* file->processes */
	struct list_head beside; /* of its epoch's others */
	u32 epoch; /* number of the epoch it runs in */
	u64 id;
	u64 first; /* its targets */
	u64 targets;
	struct nfcm_op stop; /* for the file's end */
};

/* An open file: a client. */
struct nfcm_file {
	struct kref ref;
	struct nfcm_dev *dev;
	struct list_head node; /* dev->files */
	struct nfcm_user *user; /* who opened it */
	struct list_head pinning; /* operations that want a worker … */
	struct list_head ready; /* … in user->ready, while there are some … */
	u32 workers; /* … and its workers; the pool's lock guards the three */
	spinlock_t lock; /* guards the fields down to done */
	bool dead; /* released: nobody reads completions any more */
	u32 record; /* bytes of a completion that is read */
	u32 busy_poll_us; /* that a wait polls before it sleeps */
	u32 operations; /* not yet reported and read */
	u32 inflight;
	u32 reading; /* completions that a read has and may put back */
	u32 requests; /* control requests in flight */
	atomic_t moving;
	atomic_t live; /* what must end before release returns */
	struct list_head done;
	spinlock_t process_lock; /* guards the next one, which may be long */
	struct list_head processes;
	wait_queue_head_t wait;
	spinlock_t event_lock; /* guards the next one */
	struct eventfd_ctx *
		event; /* signalled when there is something to read; NULL: none */
	bool crowded; /* waking all that wait takes long: … */
	struct work_struct waking; /* … this does it … */
	atomic_t wakes; /* … for so many completions */
	struct xarray channels; /* by handle; its lock guards the references */
	u32 next_handle;
	struct nfcm_regions regions;
	DECLARE_BITMAP(mailboxes, NFC_MAILBOXES_MAX); /* that its channels had */
	struct xarray ops; /* submitted and in flight, by id; its lock guards the references */
	u64 kept; /* the last id whose operation ended: its place in ops stays. Same lock */
	atomic64_t ids; /* that were given */
};

/*
 * An object is about to be freed: this list, its own or the one it stood in, does not
 * have it. Checked by kernels that check lists.
 */
static inline void nfcm_assert_left(const struct list_head *list)
{
	WARN_ON_ONCE(IS_ENABLED(CONFIG_DEBUG_LIST) && !list_empty(list));
}

static inline void nfcm_count(struct nfcm_dev *dev, enum nfcm_counter c, s64 n)
{
	atomic64_add(n, &dev->count[c]);
}

/* The caller asks when this is done: it is now, for the first time. */
static inline void nfcm_op_stamp(const struct nfcm_op *op, u64 *stamp)
{
	if (op->flags & NFCOMMS_STAMPED && !*stamp)
		*stamp = ktime_get_ns();
}

/* Is the operation for the control channel? */
static inline bool nfcm_op_is_request(const struct nfcm_op *op)
{
	return op->opcode == NFCOMMS_OP_SUBSCRIBE ||
	       op->opcode == NFCOMMS_OP_CONTROL;
}

/* The device of an operation, as the node's name has it; -1: no file or channel says. */
static inline int nfcm_op_minor(const struct nfcm_op *op)
{
	if (op->file)
		return op->file->dev->minor;
	return op->ch ? op->ch->epoch->dev->minor : -1;
}

/* Does the hold-off of its vectors follow their load? */
static inline bool nfcm_adapts(const struct nfcm_dev *dev)
{
	return IS_REACHABLE(CONFIG_DIMLIB) && READ_ONCE(dev->limits.adaptive) &&
	       dev->capabilities & NFC_PCI_CAP_VECTOR_HOLDOFF;
}

static inline u64 nfcm_counted(struct nfcm_dev *dev, enum nfcm_counter c)
{
	return atomic64_read(&dev->count[c]);
}

/* Parameters, see modinfo. */
extern unsigned int nfcm_param_vectors;
extern unsigned int nfcm_param_holdoff;
extern unsigned int nfcm_param_max_operations;
extern unsigned int nfcm_param_cancel_timeout_ms;
extern unsigned int nfcm_param_heartbeat_timeout_ms;
extern unsigned int nfcm_param_heartbeat_misses;
extern unsigned int nfcm_param_stall_timeout_ms;
extern unsigned int nfcm_param_watchdog_timeout_ms;
extern unsigned int nfcm_param_busy_poll_max;
extern bool nfcm_param_adaptive;
extern bool nfcm_param_recovery;
extern bool nfcm_param_register_access;

/*
 * The functions that the files call in each other, from the lowest layer to the
 * highest. A file calls those of its own layer and of layers above it in this
 * list. The upcalls are the exceptions. test/layers.sh checks the objects for
 * this order, and docs/design/0015-module-layers.md explains these layers.
 */

/* ---- upcalls ---- */

/* A message arrived. */
void nfcm_dispatch(struct nfcm_mailbox *mailbox, const struct nfc_slot *slot);

/* There is room in the ring again; pages arrived, or did not. */
void nfcm_half_push(struct nfcm_half *half);
void nfcm_half_stop(struct nfcm_half *half, u32 cause, int error);

/* The epoch ended; a half became quiet. */
void nfcm_channel_down(struct nfcm_channel *ch, u32 status);
void nfcm_channel_step(struct nfcm_channel *ch);

/* Put off until the mailbox is unlocked, or the last reference is dropped. */
void nfcm_op_finish(struct nfcm_op *op);
void nfcm_pins_run(struct nfcm_op *op);
void nfcm_pins_queue(struct nfcm_op *op);
void nfcm_pins_serve(struct nfcm_op *op);
void nfcm_chunk_let_go(struct nfcm_chunk *chunk);
void nfcm_channel_put(struct nfcm_channel *ch);

/* Once, when the module is loaded and removed. */
void nfcm_debugfs_init(void);
void nfcm_debugfs_exit(void);
void nfcm_users_fini(void);
void nfcm_workers_fini(void);

/* ---- nfcm_main.c, nfcm_hw.c: the module and the registers ---- */

extern struct class nfcm_class;
extern struct workqueue_struct *nfcm_slow_wq;
extern struct workqueue_struct *nfcm_wq;
extern struct kmem_cache *nfcm_op_cache;
dev_t nfcm_devt(int minor);
int nfcm_minor_get(void);
void nfcm_minor_put(int minor);
bool nfcm_hw_gone(struct nfcm_dev *dev);
int nfcm_hw_identify(struct nfcm_dev *dev);
int nfcm_hw_boot(struct nfcm_dev *dev, const struct nfcomms_reset *shape);
void nfcm_hw_put_back(struct nfcm_dev *dev);
void nfcm_hw_fence(struct nfcm_dev *dev);
void nfcm_hw_quiesce(struct nfcm_dev *dev);
void nfcm_hw_beat(struct nfcm_dev *dev);
void nfcm_hw_limit(struct nfcm_dev *dev);
u32 nfcm_hw_status(struct nfcm_dev *dev);
int nfcm_hw_hello(struct nfcm_dev *dev, struct nfcm_layout *l);
void nfcm_hw_answer(struct nfcm_epoch *epoch);
void nfcm_hw_give_area(struct nfcm_epoch *epoch);
void nfcm_hw_take_area(struct nfcm_epoch *epoch);

/* ---- nfcm_epoch.c, nfcm_beat.c: epochs: references, failing, heartbeats ---- */

struct nfcm_epoch *nfcm_epoch_get(struct nfcm_dev *dev);
void nfcm_epoch_put(struct nfcm_epoch *epoch);
void nfcm_epoch_fail(struct nfcm_epoch *epoch, u32 status, const char *why);
u32 nfcm_dev_state(struct nfcm_dev *dev);
void nfcm_dev_set_state(struct nfcm_dev *dev, u32 state);
void nfcm_watch_kick(struct nfcm_epoch *epoch);
u64 nfcm_watch_heartbeats(struct nfcm_epoch *epoch);
void nfcm_watch_health(struct nfcm_epoch *epoch, struct nfcomms_health *h);
bool nfcm_watch_overdue(struct nfcm_epoch *epoch);

/* ---- nfcm_mailbox.c: rings ---- */

void nfcm_epoch_lay(struct nfcm_epoch *epoch);
void nfcm_mailbox_init(struct nfcm_epoch *epoch, u32 index);
void nfcm_mailbox_lock(struct nfcm_mailbox *mailbox);
void nfcm_mailbox_unlock(struct nfcm_mailbox *mailbox);
bool nfcm_mailbox_put(struct nfcm_mailbox *mailbox, const struct nfc_slot *slot,
		      enum nfcm_room room);
bool nfcm_mailbox_put_pair(struct nfcm_mailbox *mailbox,
			   const struct nfc_slot *first,
			   const struct nfc_slot *second);
u32 nfcm_mailbox_drain(struct nfcm_mailbox *mailbox, u32 most);
u32 nfcm_mailbox_drain_all(struct nfcm_mailbox *mailbox, u32 most);
void nfcm_mailbox_room(struct nfcm_mailbox *mailbox);
void nfcm_mailbox_end(struct nfcm_mailbox *mailbox, u32 status);
void nfcm_mailbox_park(struct nfcm_channel *ch, u32 bits);

/* ---- nfcm_user.c, nfcm_worker.c, nfcm_import.c, nfcm_map.c: users, threads: nfcm_memory.h ---- */

/* ---- nfcm_op.c, nfcm_pin.c, nfcm_chunk.c, nfcm_pool.c, nfcm_region.c, nfcm_client.c: ops ---- */

/* Operations, and their memory, of which nfcm_memory.h has the rest. */

void nfcm_op_init(struct nfcm_op *op, u16 opcode, void (*end)(struct nfcm_op *));
void nfcm_op_put(struct nfcm_op *op);
void nfcm_op_release_hold(struct nfcm_op *op);
void nfcm_op_over(struct nfcm_op *op, u32 status);
void nfcm_op_error(struct nfcm_op *op, u32 status, int error);
void nfcm_file_get(struct nfcm_file *file);
void nfcm_file_put(struct nfcm_file *file);
void nfcm_file_live(struct nfcm_file *file, int n);
void nfcm_file_wake(struct nfcm_file *file);
void nfcm_file_wake_now(struct nfcm_file *file, bool event);
void nfcm_file_wake_init(struct nfcm_file *file);
int nfcm_file_event(struct nfcm_file *file, int fd);
struct nfcm_channel *nfcm_file_channel(struct nfcm_file *file, u32 handle);
int nfcm_file_bind(struct nfcm_file *file, struct nfcm_channel *ch, u32 handle);
int nfcm_file_admit(struct nfcm_file *file, struct nfcm_op *op);
struct nfcm_op *nfcm_file_find(struct nfcm_file *file, u64 id);
void nfcm_file_report(struct nfcm_op *op);
bool nfcm_file_adopt(struct nfcm_file *file, struct nfcm_process *p);
bool nfcm_file_owns(struct nfcm_file *file, u32 epoch, u64 id);
void nfcm_file_disown(struct nfcm_file *file, u32 epoch, u64 id);

/* ---- nfcm_half.c, nfcm_direct.c, nfcm_transfer.c, nfcm_eager.c, nfcm_stall.c: nfcm_half.h ---- */

/* ---- nfcm_channel.c, nfcm_dispatch.c, nfcm_start.c: channels, in nfcm_half.h ---- */

/* ---- nfcm_watch.c, nfcm_requests.c, nfcm_control.c: time and the control channel ---- */

void nfcm_watch_start(struct nfcm_epoch *epoch);
void nfcm_watch_stop(struct nfcm_epoch *epoch);
void nfcm_requests_line_up(struct nfcm_controller *k, struct nfcm_op *op);
struct nfcm_op *nfcm_requests_step_up(struct nfcm_controller *k);
void nfcm_requests_put_off(struct nfcm_controller *k, struct nfcm_op *op,
			   unsigned int ms);
void nfcm_requests_send_again(struct nfcm_controller *k);
void nfcm_requests_enlist(struct nfcm_controller *k, struct nfcm_process *p);
void nfcm_requests_delist(struct nfcm_controller *k, struct nfcm_process *p);
int nfcm_requests_parse(const struct nfcomms_op *in, struct nfc_control *out);
void nfcm_requests_answer(const struct nfc_control *reply, u8 *to);
bool nfcm_requests_blame(struct nfcm_epoch *epoch);
void nfcm_requests_forget(struct nfcm_controller *k, struct list_head *list,
			  struct nfcm_file *file);
void nfcm_control_init(struct nfcm_epoch *epoch);
int nfcm_control_open(struct nfcm_epoch *epoch);
void nfcm_control_close(struct nfcm_epoch *epoch);
void nfcm_control_submit(struct nfcm_epoch *epoch, struct nfcm_op *op);
void nfcm_control_stop(struct nfcm_epoch *epoch, struct nfcm_process *p);
void nfcm_control_cancel(struct nfcm_op *op);
void nfcm_control_forget(struct nfcm_epoch *epoch, struct nfcm_file *file);

/* ---- nfcm_dev.c: epochs: start and end ---- */

int nfcm_dev_up(struct nfcm_dev *dev);
void nfcm_dev_down(struct nfcm_dev *dev, u32 status, u32 state);
void nfcm_dev_error(struct nfcm_dev *dev);
int nfcm_dev_reset(struct nfcm_dev *dev, const struct nfcomms_reset *shape);
void nfcm_dev_remove(struct nfcm_dev *dev);
void nfcm_dev_init(struct nfcm_dev *dev);
void nfcm_dev_limit(struct nfcm_dev *dev);

/* ---- nfcm_moder.c, nfcm_busy.c: how far interrupts are apart, waits without one ---- */

void nfcm_moder_init(struct nfcm_vector *v);
void nfcm_moder_fini(struct nfcm_vector *v);
void nfcm_moder_sample(struct nfcm_vector *v, u32 messages);
void nfcm_busy_wait(struct nfcm_file *file, struct nfcm_op *called);

/* ---- nfcm_irq.c, nfcm_submit.c, nfcm_access.c: interrupts, ways in ---- */

int nfcm_irq_init(struct nfcm_dev *dev);
void nfcm_irq_fini(struct nfcm_dev *dev);
u32 nfcm_irq_vector(struct nfcm_dev *dev, u32 island);
long nfcm_ioc_submit(struct nfcm_file *file, void __user *arg);
long nfcm_ioc_call(struct nfcm_file *file, void __user *arg);
long nfcm_ioc_cancel(struct nfcm_file *file, void __user *arg);
int nfcm_access_add(struct nfcm_dev *dev);
void nfcm_access_remove(struct nfcm_dev *dev);
int nfcm_copy_in(void *to, size_t ksize, size_t first, const void __user *from);

/* ---- nfcm_file.c, nfcm_sysfs.c, nfcm_debugfs.c: what is opened and shown ---- */

extern const struct file_operations nfcm_fops;
void nfcm_file_wake_all(struct nfcm_dev *dev);
extern const struct attribute_group *nfcm_groups[];
void nfcm_debugfs_add(struct nfcm_dev *dev);
void nfcm_debugfs_remove(struct nfcm_dev *dev);

/* ---- nfcm_pci.c: the PCI function ---- */

extern struct pci_driver nfcm_pci_driver;

#endif /* NFCM_KMOD_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The driver's own structures. Who may touch what:
 *
 *	order	lock			guards
 *	1	nfc_dev.life_mutex	birth and end of a life
 *	2	nfc_box.lock		the rings of a mailbox, and every channel
 *					and operation that lives in it
 *	leaf	nfc_dev.life_lock	nfc_dev.life, .state
 *	leaf	nfc_file.lock		completions, operations by user_data,
 *					processes
 *	leaf	nfc_controller.lock	the queues of control requests
 *	leaf	nfc_watch.lock		the last heartbeat
 *
 * "Must hold box" on a function means nfc_box.lock of the mailbox that its
 * argument lives in. nfc_box_unlock() ends what ended while it was held.
 */
#ifndef NFC_KMOD_H
#define NFC_KMOD_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/hashtable.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "nfc_core.h"
#include "nfc_pci.h"
#include "uapi/nfcomms.h"

#if BITS_PER_LONG != 64
#error "slot headers are stored in one piece: this needs a 64-bit kernel"
#endif

#define NFC_NAME "nfcomms"
#define NFC_MODULE_VERSION "1.0.0"

enum nfc_sizes {
	NFC_EARLY_MAX = 4, /* messages before the reply that opens a channel */
	NFC_BOTH = 1 << NFC_H2D | 1 << NFC_D2H,
	NFC_OPS_HASH_BITS = 10,
};

struct nfc_op;
struct nfc_file;
struct nfc_life;
struct nfc_channel;

/* A run of gather lists of one transfer, pinned and mapped. */
struct nfc_chunk {
	struct list_head node; /* pins.chunks, or box->trimmed */
	struct nfc_op *op;
	struct sg_table sgt;
	enum dma_data_direction way;
	bool mapped; /* sgt and bus hold */
	u64 first; /* list */
	u64 lists;
	unsigned long start; /* in the caller's memory */
	u64 size;
	unsigned long npages;
	struct page **pages;
	u64 bus[]; /* of each device page */
};

/*
 * The memory of a transfer. chunks, lists, freed, busy and error are under box
 * until the operation has ended; then they are its finisher's.
 */
struct nfc_pins {
	struct mm_struct *mm; /* held by mm_count */
	unsigned long limit; /* pages that mm may pin in all; ULONG_MAX: any */
	struct nfc_split cut;
	u64 address;
	bool write; /* the device writes */
	bool busy; /* somebody pins the next chunk */
	int error;
	u64 lists; /* pinned so far: lists below this may be sent */
	u64 freed; /* lists below this are released again */
	u64 total; /* lists in the whole transfer */
	struct list_head chunks; /* in order */
	struct work_struct work;
	struct task_struct *lender; /* pins itself when it lets go of box */
};

/* Where an operation is; under box once it has a channel. */
enum nfc_place {
	NFC_PLACE_NEW,
	NFC_PLACE_QUEUE, /* waits for the half's turn */
	NFC_PLACE_HALF, /* is half->op */
	NFC_PLACE_ARMED,
	NFC_PLACE_CLOSING,
	NFC_PLACE_CONTROL, /* under nfc_controller.lock */
	NFC_PLACE_OVER,
};

/*
 * One operation. It is made with its completion, so that completing never
 * fails. References: the protocol's until ->end() ran; the finder's.
 */
struct nfc_op {
	refcount_t ref;
	atomic_t holds; /* the end, a pinning and chunks under way; 0: report */
	struct list_head node; /* half's queue, armed, closers, box->ended, file->done */
	struct list_head pin_node; /* box->pinning */
	struct hlist_node hash; /* file->ops */
	struct nfc_file *file; /* NULL: the driver's own */
	struct nfc_channel *ch; /* NULL: SUBSCRIBE, CONTROL */
	void (*end)(struct nfc_op *op); /* report; process context, no locks */
	u64 length;
	u64 timeout_ns;
	u16 opcode;
	u16 flags;
	u8 place; /* enum nfc_place */
	bool called; /* NFCOMMS_IOC_CALL waits for it */
	bool cancelled; /* of a control request: no more retries */
	bool moving; /* the target agreed */
	bool told; /* STOP: the device knows */
	bool detached; /* STOP of a file's end: nobody waits */
	u32 sought; /* the CANCEL that found it last; under file->lock */
	u32 cause; /* enum nfc_status: why it was stopped; 0: was not */
	int cause_error; /* errno beside it */
	u32 tries; /* STOP: questions that nobody waits for */
	u32 asked; /* how often the offer was asked back */
	ktime_t deadline; /* of the offer, if timeout_ns is one */
	struct completion done;
	struct nfc_pins pins;
	struct nfcomms_completion c; /* payload: also what goes out */
};

/* A wait for an answer that must come; counts ticks that were seen to pass. */
struct nfc_ladder {
	struct list_head node; /* box->ladders */
	struct nfc_channel *ch;
	ktime_t start;
	u64 beat;
	u64 taken;
	u32 waited_ms;
};

/* One direction of a channel. All under box. */
struct nfc_half {
	struct nfc_channel *ch;
	struct nfc_half_core *core;
	struct nfc_op *op; /* whose transaction it is */
	struct list_head queue; /* h2d: operations that wait for their turn */
	struct list_head armed;
	struct list_head starved; /* box->starved[] */
	struct nfc_ladder ladder;
	u8 shut; /* enum nfc_shut */
	u8 due; /* enum nfc_type that must be put before anything else */
	u16 due_status;
	u64 due_size;
	bool asked; /* OFFER was put for the next transaction */
	bool keeps; /* h2d: the turn is kept for who holds an ARM … */
	u64 kept; /* … of this user_data */
	bool asked_back; /* WITHDRAW asks whether the device has the offer */
	u8 wait; /* enum nfc_wait */
	u32 idle_ms; /* NFC_WAIT_MOVE: since the device said something */
	u64 wait_id; /* the transaction that waits */
	u64 since; /* box->clock_ms when the wait began */
	struct list_head waits; /* box->moving or box->offers */
};

/* What the device owes a half. */
enum nfc_wait {
	NFC_WAIT_NOTHING,
	NFC_WAIT_TARGET, /* to have the offer, until its target takes it */
	NFC_WAIT_MOVE, /* a record of the transfer, in time */
};

enum nfc_shut {
	NFC_SHUT_HOST = 1, /* closed here */
	NFC_SHUT_PEER = 2, /* closed by the device's process */
};

struct nfc_channel {
	struct kref ref;
	struct nfc_life *life;
	struct nfc_box *box;
	struct nfc_file *file; /* NULL: control */
	struct list_head node; /* box->channels, then box->retired */
	struct list_head closers; /* CLOSE operations */
	struct nfc_ladder ladder; /* for the answer to the last CLOSE */
	u32 id;
	u32 handle;
	u32 park; /* what the park word holds */
	u8 said; /* halves whose CLOSE was put */
	u8 early_count;
	bool opening; /* ids are not known: keep what comes early */
	bool gone; /* out of the life's table */
	u64 lists; /* sent since SUBSCRIBE */
	u64 repeated; /* rounds, of them */
	struct nfc_channel_core core;
	struct nfc_half half[2];
	struct nfc_slot early[NFC_EARLY_MAX];
};

/* One mailbox. */
struct nfc_box {
	spinlock_t lock; /* see the top */
	struct nfc_life *life;
	u32 index;
	u32 island;
	u32 shift;
	bool dead; /* the area must not be touched any more */
	bool published; /* slots were put: see whether the island sleeps */
	bool recheck; /* a park word was set: look once more */
	void __iomem *h2d;
	void __iomem *d2h;
	void __iomem *h2d_head;
	void __iomem *d2h_head;
	void __iomem *asleep;
	u64 tail; /* slots put */
	u64 consumed; /* of those, by the device, as last read */
	u64 taken; /* slots taken */
	u64 told; /* taken, as the device knows it */
	u64 stuck; /* consumed when starving was last looked at … */
	u32 stuck_ms; /* … and for how long it stood still */
	u64 clock_ms; /* time that the watch saw pass */
	u64 offered; /* halves in offers … */
	u64 unvisited; /* … and those that the pass under way has yet to visit */
	struct list_head moving; /* halves whose transfers must move on */
	struct list_head offers; /* halves that wait for their target */
	struct list_head channels;
	struct list_head starved[2]; /* halves that wait for room; 0: urgent */
	struct list_head ladders;
	struct list_head ended; /* operations to finish when unlocked */
	struct list_head pinning; /* operations whose pages are wanted */
	struct list_head trimmed; /* chunks to unmap when unlocked */
	struct list_head retired; /* channels that left the table */
} ____cacheline_aligned_in_smp;

/* The heartbeat, and everything else that needs time to pass. */
struct nfc_watch {
	struct delayed_work work;
	spinlock_t lock; /* guards what follows */
	struct nfc_heartbeat last;
	ktime_t seen; /* when last.beat changed */
	ktime_t tick; /* when work ran last */
	u32 blank; /* looks since then */
	bool dead; /* the area must not be touched any more */
	bool hurry; /* work runs soon */
};

/* The search for offers that the device lost; the watch's own. */
struct nfc_audit {
	u32 ms; /* since the last look */
	u32 spent_ms; /* since the last pass … */
	u32 looks; /* … and looks in it, … */
	u32 few; /* … and of those at which the device had too few */
	bool asks; /* a pass is under way */
};

/* The client of the control channel: one request at a time. */
struct nfc_controller {
	struct work_struct work;
	spinlock_t lock; /* guards what follows, up to ch */
	bool running; /* work is queued, or at it; it has a reference */
	struct list_head queue;
	struct list_head later; /* STOPs to ask again */
	struct nfc_op *current_op;
	struct nfc_channel *ch;
	wait_queue_head_t wait; /* something ended, came or was cancelled */
	struct nfc_op send, image, reply; /* the driver's own, used in turn */
	u32 request;
};

/* One life of the device, from boot to reset. */
struct nfc_life {
	struct kref ref;
	struct nfc_dev *dev;
	struct nfc_layout layout;
	atomic_t down; /* enum nfc_status it ended with; 0: it lives */
	struct work_struct fence;
	struct completion quiet; /* DMA is fenced, every call was told */
	struct xarray channels; /* by id; inserts outside box, the rest under it */
	struct nfc_watch watch;
	struct nfc_audit audit;
	struct nfc_controller control;
	u32 boxes;
	struct nfc_box box[];
};

struct nfc_vector {
	struct nfc_dev *dev;
	u32 index;
	int irq;
	atomic_t burst; /* interrupts since the thread last began */
	bool masked;
	char name[24];
};

enum nfc_counter {
	NFC_COUNT_INTERRUPTS,
	NFC_COUNT_SPURIOUS,
	NFC_COUNT_DOORBELLS,
	NFC_COUNT_DROPPED,
	NFC_COUNT_FAULTS,
	NFC_COUNT_RESETS,
	NFC_COUNT_LISTS,
	NFC_COUNT_REPEATED,
	NFC_COUNT_PINNED, /* bytes now */
	NFC_COUNTERS,
};

/* One PCI function. Lives until it is removed and the last file is closed. */
struct nfc_dev {
	struct device dev;
	struct cdev cdev;
	struct pci_dev *pdev;
	void __iomem *regs;
	void __iomem *area;
	u64 room; /* bytes of BAR 2 */
	u32 capabilities; /* enum nfc_pci_capability */
	int minor;
	u32 vectors;
	struct nfc_vector vector[NFC_VECTORS_MAX];

	struct mutex life_mutex; /* one birth or end of a life at a time */
	spinlock_t life_lock; /* guards life, state, files */
	struct nfc_life *life; /* NULL before the first */
	u32 state; /* enum nfcomms_state */
	bool removed; /* for good: no register is touched any more */
	atomic_t mapped; /* chunks mapped for DMA, or about to be */

	atomic64_t count[NFC_COUNTERS];
	struct dentry *debugfs;
	struct list_head files; /* open, under life_lock */
};

/* A process that a file started. */
struct nfc_process {
	struct list_head node; /* file->processes */
	u32 epoch;
	u64 id;
	u64 first;
	u64 targets;
	struct nfc_op stop; /* for the file's end */
};

/* An open file: a client. */
struct nfc_file {
	struct kref ref;
	struct nfc_dev *dev;
	struct list_head node; /* dev->files */
	spinlock_t lock; /* guards what follows, up to wait */
	bool dead; /* released: nobody reads completions any more */
	u32 operations; /* not yet reported and read */
	u32 inflight;
	atomic_t moving;
	atomic_t live; /* what must end before release is done */
	struct list_head done;
	struct list_head processes;
	wait_queue_head_t wait;
	struct xarray channels; /* by handle; its lock guards the references */
	u32 next_handle;
	u32 seek; /* CANCELs so far */
	DECLARE_HASHTABLE(ops, NFC_OPS_HASH_BITS);
};

static inline void nfc_count(struct nfc_dev *dev, enum nfc_counter c, s64 n)
{
	atomic64_add(n, &dev->count[c]);
}

static inline u64 nfc_counted(struct nfc_dev *dev, enum nfc_counter c)
{
	return atomic64_read(&dev->count[c]);
}

/* Parameters, see modinfo. */
extern unsigned int nfc_param_vectors;
extern unsigned int nfc_param_holdoff;
extern unsigned int nfc_param_max_operations;
extern unsigned int nfc_param_ladder_ms;
extern unsigned int nfc_param_silence_ms;
extern unsigned int nfc_param_beats;
extern unsigned int nfc_param_stall_ms;
extern unsigned int nfc_param_watchdog_ms;

/* nfc_main.c */
extern struct class nfc_class;
extern struct workqueue_struct *nfc_pin_wq;
extern struct workqueue_struct *nfc_life_wq;
extern struct kmem_cache *nfc_op_cache;
dev_t nfc_devt(int minor);
int nfc_minor_get(void);
void nfc_minor_put(int minor);

/* nfc_pci.c */
extern struct pci_driver nfc_pci_driver;

/* nfc_hw.c */
bool nfc_hw_gone(struct nfc_dev *dev);
int nfc_hw_identify(struct nfc_dev *dev);
int nfc_hw_boot(struct nfc_dev *dev, const struct nfcomms_reset *shape);
void nfc_hw_quiesce(struct nfc_dev *dev);
void nfc_hw_beat(struct nfc_dev *dev);
u32 nfc_hw_status(struct nfc_dev *dev);
int nfc_hw_handshake(struct nfc_dev *dev, struct nfc_layout *l);

/* nfc_life.c */
int nfc_dev_up(struct nfc_dev *dev);
void nfc_dev_down(struct nfc_dev *dev, u32 status, u32 state);
int nfc_dev_reset(struct nfc_dev *dev, const struct nfcomms_reset *shape);
void nfc_dev_remove(struct nfc_dev *dev);
struct nfc_life *nfc_life_get(struct nfc_dev *dev);
void nfc_life_put(struct nfc_life *life);
void nfc_life_fail(struct nfc_life *life, u32 status, const char *why);
u32 nfc_dev_state(struct nfc_dev *dev);

/* nfc_box.c */
void nfc_box_init(struct nfc_life *life, u32 index);
void nfc_box_lock(struct nfc_box *box);
void nfc_box_unlock(struct nfc_box *box);
bool nfc_box_put(struct nfc_box *box, const struct nfc_slot *slot,
		 enum nfc_room room);
bool nfc_box_put_pair(struct nfc_box *box, const struct nfc_slot *first,
		      const struct nfc_slot *second);
bool nfc_box_drain(struct nfc_box *box, u32 most);
u32 nfc_box_drain_all(struct nfc_box *box);
void nfc_box_feed_starved(struct nfc_box *box);
void nfc_box_kill(struct nfc_box *box, u32 status);
void nfc_box_park(struct nfc_channel *ch, u32 bits);

/* nfc_dispatch.c */
void nfc_dispatch(struct nfc_box *box, const struct nfc_slot *slot);
void nfc_channel_opened(struct nfc_channel *ch, u64 h2d, u64 d2h,
			u64 generation);

/* nfc_channel.c */
struct nfc_channel *nfc_channel_new(struct nfc_life *life, u32 id,
				    struct nfc_file *file);
void nfc_channel_put(struct nfc_channel *ch);
int nfc_channel_enter(struct nfc_channel *ch);
void nfc_channel_leave(struct nfc_channel *ch);
void nfc_channel_shut(struct nfc_channel *ch, u32 halves, u8 why);
void nfc_channel_step(struct nfc_channel *ch);
void nfc_channel_down(struct nfc_channel *ch, u32 status);
void nfc_channel_over(struct nfc_channel *ch);
void nfc_channel_close(struct nfc_channel *ch, struct nfc_op *op);

/* nfc_half.c */
void nfc_half_init(struct nfc_channel *ch, enum nfc_direction direction);
struct nfc_box *nfc_half_box(struct nfc_half *half);
void nfc_half_header(struct nfc_half *half, struct nfc_slot *slot,
		     enum nfc_type type, u32 length, u64 id);
void nfc_half_starve(struct nfc_half *half, bool urgent);
void nfc_half_fed(struct nfc_half *half);
void nfc_half_owe(struct nfc_half *half, enum nfc_type type, u32 status,
		  u64 size);
void nfc_half_push(struct nfc_half *half);
void nfc_half_end(struct nfc_half *half, u32 status);
void nfc_half_stop(struct nfc_half *half, u32 cause, int error);
void nfc_half_down(struct nfc_half *half, u32 status);
void nfc_half_event(struct nfc_half *half, const struct nfc_judgement *j);
void nfc_half_arm(struct nfc_half *half, struct nfc_op *op);
void nfc_half_fire(struct nfc_half *half, u32 status);
bool nfc_half_quiet(const struct nfc_half *half);
void nfc_ladder_start(struct nfc_ladder *ladder, struct nfc_channel *ch);
void nfc_ladder_stop(struct nfc_ladder *ladder);

/* nfc_stall.c */
void nfc_stall_track(struct nfc_half *half);
void nfc_stall_forget(struct nfc_half *half);
void nfc_stall_look(struct nfc_box *box, u32 ms);
void nfc_stall_audit(struct nfc_life *life, u64 parked, u32 ms);

/* nfc_direct.c */
void nfc_send_start(struct nfc_half *half, struct nfc_op *op);
void nfc_send_next(struct nfc_half *half);
void nfc_send_keep(struct nfc_half *half);
void nfc_send_release(struct nfc_half *half, struct nfc_op *op);
void nfc_receive_start(struct nfc_half *half, struct nfc_op *op);
void nfc_receive_next(struct nfc_half *half);
void nfc_receive_release(struct nfc_half *half);
void nfc_receive_refuse(struct nfc_half *half, struct nfc_op *op);

/* nfc_transfer.c */
void nfc_transfer_feed(struct nfc_half *half);
bool nfc_transfer_begin(struct nfc_half *half);
void nfc_transfer_progress(struct nfc_half *half, const struct nfc_record *r);
void nfc_transfer_account(struct nfc_half *half, const struct nfc_record *r);

/* nfc_pin.c */
int nfc_pins_init(struct nfc_op *op, u64 address, bool write);
void nfc_pins_take_over(struct nfc_op *op, struct nfc_op *from);
void nfc_pins_want(struct nfc_op *op);
int nfc_pins_all(struct nfc_op *op);
void nfc_pins_run(struct nfc_op *op);
void nfc_pins_work(struct work_struct *work);
void nfc_pins_trim(struct nfc_op *op, u64 acked);
void nfc_pins_release(struct nfc_op *op);
void nfc_pins_fini(struct nfc_op *op);
void nfc_chunk_free(struct nfc_chunk *chunk);
const u64 *nfc_pins_bus(struct nfc_pins *p, u64 list);

/* nfc_op.c */
void nfc_op_init(struct nfc_op *op, u16 opcode, void (*end)(struct nfc_op *));
void nfc_op_put(struct nfc_op *op);
void nfc_op_over(struct nfc_op *op, u32 status);
void nfc_op_error(struct nfc_op *op, u32 status, int error);
void nfc_op_finish(struct nfc_op *op);
void nfc_op_release_hold(struct nfc_op *op);
void nfc_op_start(struct nfc_op *op);
void nfc_op_cancel(struct nfc_op *op);
long nfc_ioc_submit(struct nfc_file *file, void __user *arg);
long nfc_ioc_call(struct nfc_file *file, void __user *arg);
long nfc_ioc_cancel(struct nfc_file *file, void __user *arg);
int nfc_copy_in(void *to, size_t ksize, const void __user *from);

/* nfc_control.c */
void nfc_control_init(struct nfc_life *life);
int nfc_control_open(struct nfc_life *life);
void nfc_control_close(struct nfc_life *life);
void nfc_control_submit(struct nfc_life *life, struct nfc_op *op);
void nfc_control_stop(struct nfc_life *life, struct nfc_process *p);
void nfc_control_cancel(struct nfc_op *op);
void nfc_control_forget(struct nfc_life *life, struct nfc_file *file);
int nfc_control_check(const struct nfcomms_op *in);

/* nfc_watch.c */
void nfc_watch_start(struct nfc_life *life);
void nfc_watch_stop(struct nfc_life *life);
void nfc_watch_hurry(struct nfc_life *life);
u64 nfc_watch_beat(struct nfc_life *life);
void nfc_watch_health(struct nfc_life *life, struct nfcomms_health *h);

/* nfc_file.c */
extern const struct file_operations nfc_fops;
struct nfc_channel *nfc_file_channel(struct nfc_file *file, u32 handle);
int nfc_file_admit(struct nfc_file *file, struct nfc_op *op);
u32 nfc_file_seek(struct nfc_file *file);
u32 nfc_file_more(struct nfc_file *file, u64 user_data, u32 seek,
		  struct nfc_op **ops, u32 most);
void nfc_file_report(struct nfc_op *op);
void nfc_file_live(struct nfc_file *file, int n);
void nfc_file_get(struct nfc_file *file);
void nfc_file_put(struct nfc_file *file);
void nfc_file_wake_all(struct nfc_dev *dev);
int nfc_file_bind(struct nfc_file *file, struct nfc_channel *ch, u32 handle);
bool nfc_file_adopt(struct nfc_file *file, struct nfc_process *p);
bool nfc_file_owns(struct nfc_file *file, u32 epoch, u64 id);
void nfc_file_disown(struct nfc_file *file, u32 epoch, u64 id);

/* nfc_sysfs.c */
extern const struct attribute_group *nfc_groups[];

/* nfc_debugfs.c */
void nfc_debugfs_init(void);
void nfc_debugfs_exit(void);
void nfc_debugfs_add(struct nfc_dev *dev);
void nfc_debugfs_remove(struct nfc_dev *dev);

/* nfc_irq.c */
int nfc_irq_init(struct nfc_dev *dev);
void nfc_irq_fini(struct nfc_dev *dev);
u32 nfc_irq_vector(struct nfc_dev *dev, u32 island);

#endif /* NFC_KMOD_H */

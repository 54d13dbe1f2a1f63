// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests of user space: checked, made into operations, waited for, cancelled.
 */
#include <linux/capability.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nfcm_kmod.h"
#include "trace.h"

/* Sizes and statuses are part of the interface, whatever becomes of the structures. */
static_assert(sizeof(struct nfcomms_op) >= NFCOMMS_OP_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_completion) == NFCOMMS_COMPLETION_SIZE_FIRST);
static_assert(offsetof(struct nfcomms_record, stamps) ==
	      NFCOMMS_COMPLETION_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_submit) >= NFCOMMS_SUBMIT_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_call) >= NFCOMMS_CALL_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_cancel) >= NFCOMMS_CANCEL_SIZE_FIRST);
static_assert((int)NFCOMMS_STATUS_COUNT == (int)NFC_STATUS_COUNT);
static_assert((int)NFCOMMS_STATUS_STALLED == (int)NFC_ESTALLED);

/*
 * Copy a structure that begins with its size: what a caller of the first version
 * or a later one does not have is zero. -E2BIG if it is larger than ours and the
 * rest is not zero, -EINVAL if it is smaller than the first.
 */
int nfcm_copy_in(void *to, size_t ksize, size_t first, const void __user *from)
{
	u32 size;

	if (get_user(size, (const u32 __user *)from))
		return -EFAULT;
	if (size < first)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(to, ksize, from, size);
}

/* The fields that an opcode may carry. */
struct rule {
	u16 flags;
	bool channel, address, timeout, payload, target;
};

/* Flags of what moves bytes. */
enum { MOVES = NFCOMMS_NOWAIT | NFCOMMS_HOLD | NFCOMMS_STAMPED };

static const struct rule rules[NFCOMMS_OP_COUNT] = {
	[NFCOMMS_OP_SUBSCRIBE] = { .target = true },
	[NFCOMMS_OP_CLOSE] = { .channel = true,
			       .flags = NFCOMMS_H2D | NFCOMMS_D2H },
	[NFCOMMS_OP_SEND] = { .channel = true, .payload = true, .flags = MOVES },
	[NFCOMMS_OP_RECEIVE] = { .channel = true, .flags = MOVES },
	[NFCOMMS_OP_SEND_IND] = { .channel = true,
				  .address = true,
				  .timeout = true,
				  .flags = MOVES },
	[NFCOMMS_OP_RECEIVE_IND] = { .channel = true,
				     .address = true,
				     .flags = MOVES },
	[NFCOMMS_OP_NEXT] = { .channel = true, .flags = NFCOMMS_NOWAIT },
	[NFCOMMS_OP_ARM] = { .channel = true,
			     .flags = NFCOMMS_H2D | NFCOMMS_D2H | NFCOMMS_HOLD },
	[NFCOMMS_OP_ACCEPT] = { .channel = true },
	[NFCOMMS_OP_REFUSE] = { .channel = true, .flags = NFCOMMS_H2D },
	[NFCOMMS_OP_CONTROL] = { .address = true, .payload = true },
	[NFCOMMS_OP_ASK] = { .channel = true,
			     .payload = true,
			     .flags = NFCOMMS_NOWAIT | NFCOMMS_HOLD },
};

static bool is_transfer(u16 opcode)
{
	return opcode == NFCOMMS_OP_SEND_IND ||
	       opcode == NFCOMMS_OP_RECEIVE_IND || opcode == NFCOMMS_OP_CONTROL;
}

/* Lengths and flags whose rules depend on the opcode. */
static int check_opcode(const struct nfcomms_op *in)
{
	u16 halves = in->flags & (NFCOMMS_H2D | NFCOMMS_D2H);
	bool holds = in->flags & NFCOMMS_HOLD && !(in->flags & NFCOMMS_NOWAIT);
	bool tries = in->flags & (NFCOMMS_HOLD | NFCOMMS_NOWAIT);

	switch (in->opcode) {
	case NFCOMMS_OP_SEND:
	case NFCOMMS_OP_ASK:
		if (in->length > NFCOMMS_PAYLOAD_SIZE || holds ||
		    memchr_inv(in->payload + in->length, 0,
			       NFCOMMS_PAYLOAD_SIZE - in->length))
			return -EINVAL;
		return 0;
	case NFCOMMS_OP_RECEIVE:
		return in->length > NFCOMMS_PAYLOAD_SIZE ? -EINVAL : 0;
	case NFCOMMS_OP_CLOSE:
		return halves && !in->length ? 0 : -EINVAL;
	case NFCOMMS_OP_SEND_IND: /* no time, or some */
		return holds || (tries && in->timeout_ns) ? -EINVAL : 0;
	case NFCOMMS_OP_ARM: /* one half, and a place only among sends */
		if (!halves || halves & (halves - 1) || in->length)
			return -EINVAL;
		return in->flags & NFCOMMS_HOLD && halves != NFCOMMS_H2D ?
			       -EINVAL :
			       0;
	case NFCOMMS_OP_SUBSCRIBE:
	case NFCOMMS_OP_NEXT:
	case NFCOMMS_OP_ACCEPT:
	case NFCOMMS_OP_REFUSE:
		return in->length ? -EINVAL : 0;
	default:
		return 0;
	}
}

/* Does it give back the turn of an ARM? */
static bool releases(const struct nfcomms_op *in)
{
	return in->opcode == NFCOMMS_OP_REFUSE && in->flags & NFCOMMS_H2D;
}

/* Refuse what has no meaning, before anything is done. */
static int check(const struct nfcomms_op *in)
{
	const struct rule *r;

	if (in->opcode < NFCOMMS_OP_SUBSCRIBE || in->opcode >= NFCOMMS_OP_COUNT)
		return -EINVAL;
	r = &rules[in->opcode];
	if (in->flags & ~r->flags || (!r->channel && in->channel) ||
	    (!r->address && in->address) || (!r->timeout && in->timeout_ns) ||
	    (r->channel && in->epoch) || (!r->target && in->target) ||
	    (in->operation && !releases(in)) || in->rsvd)
		return -EINVAL;
	if (in->region ? !r->address || !r->channel || in->address : in->offset)
		return -EINVAL;
	if (!r->payload && memchr_inv(in->payload, 0, sizeof(in->payload)))
		return -EINVAL;
	return check_opcode(in);
}

static struct nfcm_op *op_alloc(struct nfcm_file *file,
				const struct nfcomms_op *in,
				const struct nfc_control *request, u64 id)
{
	struct nfcm_op *op = kmem_cache_zalloc(nfcm_op_cache, GFP_KERNEL);

	if (!op)
		return NULL;
	nfcm_op_init(op, in->opcode, nfcm_file_report);
	nfcm_file_get(file);
	op->file = file;
	op->flags = in->flags;
	op->length = in->length;
	op->timeout_ns = in->timeout_ns;
	op->epoch = in->epoch;
	op->target = in->target;
	op->arm = in->operation;
	op->c.user_data = in->user_data;
	op->c.id = id;
	op->c.channel = in->channel;
	if (in->opcode == NFCOMMS_OP_CONTROL)
		memcpy(op->c.payload, request, sizeof(*request));
	else
		memcpy(op->c.payload, in->payload, sizeof(op->c.payload));
	return op;
}

/* End an operation that did not start. No locks. */
static void refuse(struct nfcm_op *op, u32 status, int error)
{
	op->c.status = status;
	op->c.error = error;
	nfcm_op_finish(op);
}

/* Does the request start a program that may keep an island to itself? */
static bool starts_lone(const struct nfc_control *c)
{
	return le16_to_cpu(c->op) == NFC_CONTROL_START &&
	       !strncmp((const char *)c->name, NFC_LONE, strlen(NFC_LONE));
}

/*
 * May the caller do this? A program is code that runs with all rights of the
 * device, so loading one takes the right to RESET. So does a START of one that
 * may keep others from the device. A process that is started belongs to its
 * file and ends with it. A START takes the rights of a channel, and a user
 * whose processes did not lose the device repeatedly.
 */
static int permit(struct nfcm_file *file, const struct nfc_control *c)
{
	if ((le16_to_cpu(c->op) == NFC_CONTROL_LOAD || starts_lone(c)) &&
	    !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (le16_to_cpu(c->op) == NFC_CONTROL_START &&
	    !nfcm_user_may_start(file->user) && !capable(CAP_SYS_ADMIN))
		return -EDQUOT;
	return 0;
}

/* As many ids as operations, that the file has not given yet: the first one. */
static u64 take_ids(struct nfcm_file *file, u32 count)
{
	return atomic64_add_return(count, &file->ids) - count + 1;
}

/*
 * Make an operation of what user space gave, or return why it is not in order.
 * The caller gets a reference and begins it.
 */
static struct nfcm_op *submit_make(struct nfcm_file *file,
				   const struct nfcomms_op *in, u64 id,
				   bool called)
{
	struct nfc_control request;
	struct nfcm_op *op;
	int rc = check(in);

	if (!rc && in->opcode == NFCOMMS_OP_CONTROL)
		rc = nfcm_requests_parse(in, &request) ?: permit(file, &request);
	if (rc)
		return ERR_PTR(rc);
	op = op_alloc(file, in, &request, id);
	if (!op)
		return ERR_PTR(-ENOMEM);
	op->called = called;
	if (rules[in->opcode].channel) {
		op->ch = nfcm_file_channel(file, in->channel);
		rc = op->ch ? 0 : -ENOENT;
	}
	if (op->ch)
		op->c.epoch = op->ch->epoch->layout.epoch;
	if (!rc)
		rc = nfcm_file_admit(file, op);
	if (rc) {
		nfcm_op_put(op);
		return ERR_PTR(rc);
	}
	return op;
}

/* Start an operation of the present epoch, which may not be the one that it is meant for. */
static void begin_in_epoch(struct nfcm_file *file, struct nfcm_op *op)
{
	struct nfcm_epoch *epoch = nfcm_epoch_get(file->dev);

	if (!epoch) {
		refuse(op, NFC_ERESET, 0);
		return;
	}
	op->c.epoch = epoch->layout.epoch;
	if (op->epoch && op->epoch != epoch->layout.epoch)
		refuse(op, NFC_ERESET, ESTALE);
	else
		nfcm_control_submit(epoch, op);
	nfcm_epoch_put(epoch);
}

/* Begin an admitted operation; from here on it has exactly one completion. */
static void submit_begin(struct nfcm_file *file, struct nfcm_op *op,
			 const struct nfcomms_op *in)
{
	int rc = 0;

	trace_nfcomms_submit(op);
	nfcm_op_stamp(op, &op->stamps.taken_ns);
	if (is_transfer(op->opcode))
		rc = nfcm_pins_init(op, in,
				    op->opcode == NFCOMMS_OP_RECEIVE_IND);
	if (rc) {
		refuse(op, rc == -ENOMEM ? NFC_ENOMEM : NFC_EINVAL, -rc);
	} else if (op->ch && is_transfer(op->opcode) && /* CONTROL has none yet */
		   op->length > op->ch->epoch->layout.max_transfer) {
		op->c.limit = op->ch->epoch->layout.max_transfer;
		refuse(op, NFC_ETOOLARGE, 0);
	} else if (op->ch) {
		nfcm_op_start(op);
	} else {
		begin_in_epoch(file, op);
	}
}

/* Take operations one by one until one is not in order. */
static int submit(struct nfcm_file *file, struct nfcomms_submit *s)
{
	void __user *from = u64_to_user_ptr(s->ops);
	struct nfcomms_op in;
	struct nfcm_op *op;
	int rc;

	while (s->accepted < s->count) {
		rc = copy_struct_from_user(&in, sizeof(in),
					   from + (size_t)s->accepted *
							   s->op_size,
					   s->op_size);
		if (rc)
			return rc;
		op = submit_make(file, &in, s->first_id + s->accepted, false);
		if (IS_ERR(op))
			return PTR_ERR(op);
		refcount_inc(&op->ref);
		submit_begin(file, op, &in);
		nfcm_op_put(op);
		s->accepted++;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* NFCOMMS_IOC_SUBMIT. No locks; does not wait for the device. */
long nfcm_ioc_submit(struct nfcm_file *file, void __user *arg)
{
	enum { COUNT_MAX = 256 };
	struct nfcomms_submit s;
	int rc = nfcm_copy_in(&s, sizeof(s), NFCOMMS_SUBMIT_SIZE_FIRST, arg);
	size_t size;

	if (rc)
		return rc;
	if (!s.count || s.count > COUNT_MAX || s.rsvd ||
	    s.op_size < NFCOMMS_OP_SIZE_FIRST)
		return -EINVAL;
	size = min_t(size_t, s.size, sizeof(s));
	if (s.op_size > PAGE_SIZE)
		return -E2BIG;
	s.accepted = 0;
	s.error = 0;
	s.first_id = take_ids(file, s.count);
	/* Operations are not begun if the result could not be written. */
	if (copy_to_user(arg, &s, size))
		return -EFAULT;
	rc = submit(file, &s);
	if (!s.accepted)
		return rc;
	s.error = -rc;
	/* If its memory was unmapped meanwhile: they have begun all the same. */
	rc = copy_to_user(arg, &s, size);
	return 0;
}

/* Take an operation of a file back. Does not wait. The caller has a reference. */
static void submit_cancel(struct nfcm_op *op)
{
	if (nfcm_op_is_request(op))
		nfcm_control_cancel(op);
	else
		nfcm_op_withdraw(op);
}

/*
 * Wait for a called operation. A signal takes it back, and the wait continues
 * until it has ended; only a fatal one leaves it to end by itself.
 */
static int wait_called(struct nfcm_op *op, bool *interrupted)
{
	if (!nfcm_op_is_request(op))
		nfcm_busy_wait(op->file, op);
	*interrupted = wait_for_completion_state(&op->done,
						 TASK_INTERRUPTIBLE |
							 TASK_FREEZABLE);
	if (!*interrupted)
		return 0;
	submit_cancel(op);
	return wait_for_completion_state(&op->done,
					 TASK_KILLABLE | TASK_FREEZABLE) ?
		       -EINTR :
		       0;
}

/*
 * Read the operation of a CALL. One whose result could not be written is not
 * begun.
 */
static int take_call(const struct nfcomms_call *call, struct nfcomms_op *in)
{
	int rc;

	if (call->flags || memchr_inv(call->rsvd, 0, sizeof(call->rsvd)) ||
	    call->op_size < NFCOMMS_OP_SIZE_FIRST ||
	    call->completion_size < NFCOMMS_COMPLETION_SIZE_FIRST)
		return -EINVAL;
	if (call->op_size > PAGE_SIZE || call->completion_size > PAGE_SIZE)
		return -E2BIG;
	rc = copy_struct_from_user(in, sizeof(*in), u64_to_user_ptr(call->op),
				   call->op_size);
	if (!rc && clear_user(u64_to_user_ptr(call->completion),
			      call->completion_size))
		rc = -EFAULT;
	return rc;
}

/*
 * NFCOMMS_IOC_CALL. No locks; waits until the operation ended, or was taken
 * back.
 */
long nfcm_ioc_call(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_call call;
	struct nfcomms_op in;
	bool interrupted;
	struct nfcm_op *op;
	int rc = nfcm_copy_in(&call, sizeof(call), NFCOMMS_CALL_SIZE_FIRST, arg);

	if (!rc)
		rc = take_call(&call, &in);
	if (rc)
		return rc;
	op = submit_make(file, &in, take_ids(file, 1), true);
	if (IS_ERR(op))
		return PTR_ERR(op);
	refcount_inc(&op->ref);
	submit_begin(file, op, &in);
	rc = wait_called(op, &interrupted);
	if (!rc && interrupted && op->c.status == NFC_EWITHDRAWN &&
	    !(op->c.flags & NFCOMMS_TAKEN)) /* no process saw it */
		rc = -ERESTARTNOHAND; /* EINTR; if no handler ran, once more */
	if (!rc && copy_to_user(u64_to_user_ptr(call.completion), &op->record,
				min_t(size_t, call.completion_size,
				      sizeof(op->record))))
		rc = -EFAULT;
	nfcm_op_put(op);
	return rc;
}

/* NFCOMMS_IOC_CANCEL. No locks; does not wait. */
long nfcm_ioc_cancel(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_cancel c;
	struct nfcm_op *op;
	int rc = nfcm_copy_in(&c, sizeof(c), NFCOMMS_CANCEL_SIZE_FIRST, arg);

	if (rc)
		return rc;
	if (c.flags || memchr_inv(c.rsvd, 0, sizeof(c.rsvd)))
		return -EINVAL;
	op = nfcm_file_find(file, c.id);
	if (!op)
		return -ENOENT;
	submit_cancel(op);
	nfcm_op_put(op);
	return 0;
}

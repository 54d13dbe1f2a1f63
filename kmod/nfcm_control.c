// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control channel: requests of all files, served one by one by a worker
 * that may wait; files have their turns, however many requests each has. The
 * worker talks to the device with operations of its own.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "nfcm_kmod.h"

enum {
	REPLY_MS = 10000, /* for the reply to a request */
	GRACE_MS = 1000, /* … at least, once the request is cancelled */
	STOP_MS = 2, /* between two STOPs of one process */
	STOP_TRIES = 500, /* when nobody waits for it */
};

/* Make the control channel, whose ids are known. */
int nfcm_control_open(struct nfcm_epoch *epoch)
{
	struct nfcm_controller *k = &epoch->control;
	struct nfcm_channel *ch = nfcm_channel_new(epoch, NFC_TARGET_CONTROL,
						   NULL);
	int rc;

	if (!ch)
		return -ENOMEM;
	nfcm_core_open(&ch->core, 1, 1, 0);
	ch->opening = false;
	k->ch = ch;
	rc = nfcm_channel_enter(ch);
	if (rc) {
		k->ch = NULL;
		nfcm_channel_put(ch);
	}
	return rc;
}

/* The epoch ended and nobody submits any more: break the cycle of references. */
void nfcm_control_close(struct nfcm_epoch *epoch)
{
	struct nfcm_channel *ch;

	spin_lock(&epoch->control.lock);
	ch = epoch->control.ch;
	epoch->control.ch = NULL;
	spin_unlock(&epoch->control.lock);
	if (ch)
		nfcm_channel_put(ch);
}

/* The control channel, with a reference; NULL once the epoch has ended. */
static struct nfcm_channel *control_channel(struct nfcm_epoch *epoch)
{
	struct nfcm_channel *ch;

	spin_lock(&epoch->control.lock);
	ch = epoch->control.ch;
	if (ch)
		kref_get(&ch->ref);
	spin_unlock(&epoch->control.lock);
	return ch;
}

/* End a request that is on no list any more. No locks. */
static void end(struct nfcm_op *op, u32 status, int error)
{
	op->c.status = status;
	op->c.error = error;
	nfcm_op_finish(op);
}

/*
 * The same for the request at hand: once it has ended its file may free it, and
 * must not find it here. Worker.
 */
static void end_current(struct nfcm_epoch *epoch, struct nfcm_op *op,
			u32 status, int error)
{
	struct nfcm_controller *k = &epoch->control;

	spin_lock(&k->lock);
	k->current_op = NULL;
	spin_unlock(&k->lock);
	end(op, status, error);
}

static u32 status_of_down(struct nfcm_epoch *epoch)
{
	return atomic_read(&epoch->down) ?: NFC_ERESET;
}

/* ---- the driver's own operations ---- */

static void own_end(struct nfcm_op *op)
{
	struct nfcm_epoch *epoch = op->ch->epoch;

	complete_all(&op->done);
	wake_up_all(&epoch->control.wait);
}

/* Make one ready for use again. Worker. */
static void prepare(struct nfcm_op *op, struct nfcm_channel *ch, u16 opcode)
{
	memset(op, 0, sizeof(*op));
	nfcm_op_init(op, opcode, own_end);
	op->ch = ch;
	op->length = NFC_PAYLOAD_SIZE;
}

/*
 * Wait for one; false if it took longer. When the request is cancelled so is
 * it, unless needed. Worker.
 */
static bool wait_own(struct nfcm_op *own, struct nfcm_op *op, bool needed,
		     unsigned int ms)
{
	struct nfcm_controller *k = &own->ch->epoch->control;
	long left = ms ? msecs_to_jiffies(ms) : MAX_SCHEDULE_TIMEOUT;

	left = wait_event_timeout(k->wait,
				  completion_done(&own->done) ||
					  READ_ONCE(op->cancelled),
				  left);
	if (completion_done(&own->done))
		return true;
	if (!left)
		return false;
	if (!needed)
		nfcm_op_withdraw(own);
	else
		ms = max_t(unsigned int, GRACE_MS,
			   own->ch->epoch->dev->limits.heartbeat_timeout_ms);
	left = ms ? msecs_to_jiffies(ms) : MAX_SCHEDULE_TIMEOUT;
	return wait_event_timeout(k->wait, completion_done(&own->done), left);
}

/* ---- one request ---- */

/* The reply belongs to the request, or the device is at fault. Worker. */
static u32 check_reply(struct nfcm_epoch *epoch, const struct nfc_control *req,
		       struct nfc_control *reply)
{
	struct nfcm_op *own = &epoch->control.reply;

	memcpy(reply, own->c.payload, sizeof(*reply));
	if (own->c.status == NFC_OK && own->c.length == sizeof(*reply) &&
	    reply->op == req->op && reply->request == req->request &&
	    le16_to_cpu(reply->status) < NFC_STATUS_COUNT)
		return le16_to_cpu(reply->status);
	memset(reply, 0, sizeof(*reply));
	nfcm_epoch_fail(epoch, NFC_EFAULT,
			"control request answered by nonsense");
	return NFC_EFAULT;
}

/* Start receiving the reply. Worker. */
static void receive_reply(struct nfcm_epoch *epoch, struct nfcm_channel *ch)
{
	struct nfcm_op *own = &epoch->control.reply;

	prepare(own, ch, NFCOMMS_OP_RECEIVE);
	nfcm_op_start(own);
}

/*
 * Wait for the reply. It is waited for even if the request was cancelled, because it
 * may hand over something; without one the device is lost. Worker.
 */
static u32 take_reply(struct nfcm_epoch *epoch, struct nfcm_op *op,
		      const struct nfc_control *req, struct nfc_control *reply)
{
	struct nfcm_op *own = &epoch->control.reply;

	if (!wait_own(own, op, true, REPLY_MS)) {
		nfcm_epoch_fail(epoch, NFC_ERESET,
				"control request not answered");
		wait_for_completion(&own->done);
	}
	if (own->c.status && atomic_read(&epoch->down))
		return status_of_down(epoch);
	return check_reply(epoch, req, reply);
}

/* Has a reply arrived that belongs to the request? Worker. */
static bool answers(struct nfcm_op *own, const struct nfc_control *req)
{
	struct nfc_control reply;

	if (!completion_done(&own->done) || own->c.status)
		return false;
	memcpy(&reply, own->c.payload, sizeof(reply));
	return reply.request == req->request;
}

/*
 * The image of a LOAD did not get through. The device may wait for it still,
 * which only another request ends, without a reply; or it saw the image fail and
 * replies. So send a harmless request: the first reply shows which it is, and
 * the device listens again. Worker.
 */
static u32 settle_load(struct nfcm_epoch *epoch, struct nfcm_op *op,
		       struct nfcm_channel *ch, const struct nfc_control *req,
		       struct nfc_control *reply)
{
	struct nfcm_controller *k = &epoch->control;
	struct nfc_control other = {
		.op = cpu_to_le16(NFC_CONTROL_MEMORY),
		.request = cpu_to_le32(++k->request),
	}, unused;
	u32 status = NFC_EABORTED;

	receive_reply(epoch, ch);
	prepare(&k->send, ch, NFCOMMS_OP_SEND);
	memcpy(k->send.c.payload, &other, sizeof(other));
	nfcm_op_start(&k->send);
	wait_own(&k->reply, op, true, REPLY_MS);
	if (answers(&k->reply, req)) {
		status = take_reply(epoch, op, req, reply);
		receive_reply(epoch, ch);
	}
	take_reply(epoch, op, &other, &unused);
	wait_for_completion(&k->send.done); /* it was replied to, or all is over */
	return status;
}

/* Send the image of a LOAD, which is pinned. Worker. */
static u32 send_image(struct nfcm_epoch *epoch, struct nfcm_op *op,
		      struct nfcm_channel *ch)
{
	struct nfcm_op *own = &epoch->control.image;

	prepare(own, ch, NFCOMMS_OP_SEND_IND);
	nfcm_pins_take_over(own, op);
	nfcm_op_start(own);
	wait_own(own, op, false, 0);
	nfcm_pins_fini(own);
	return own->c.status;
}

/* A request and its reply on the control channel; see call(). Worker. */
static u32 exchange(struct nfcm_epoch *epoch, struct nfcm_op *op,
		    struct nfcm_channel *ch, struct nfc_control *req,
		    struct nfc_control *reply)
{
	struct nfcm_controller *k = &epoch->control;
	struct nfcm_op *own = &k->send;
	u32 status, sent = NFC_OK;

	req->request = cpu_to_le32(++k->request);
	prepare(own, ch, NFCOMMS_OP_SEND);
	memcpy(own->c.payload, req, sizeof(*req));
	nfcm_op_start(own);
	wait_own(own, op, false, 0);
	status = own->c.status;
	if (status)
		return status;
	if (op->pins.size)
		sent = send_image(epoch, op, ch);
	if (sent)
		return settle_load(epoch, op, ch, req, reply) ?: sent;
	receive_reply(epoch, ch);
	return take_reply(epoch, op, req, reply);
}

/* One request, with its image if it has one, and its reply. Worker. */
static u32 call(struct nfcm_epoch *epoch, struct nfcm_op *op,
		struct nfc_control *req, struct nfc_control *reply)
{
	struct nfcm_channel *ch = control_channel(epoch);
	u32 status;

	if (!ch) /* the fence has passed since it was queued */
		return status_of_down(epoch);
	status = exchange(epoch, op, ch, req, reply);
	nfcm_channel_put(ch);
	return status;
}

/* ---- requests of files ---- */

/* Subscribe a target; its channel is in the table already. Worker. */
static void subscribe(struct nfcm_epoch *epoch, struct nfcm_op *op)
{
	struct nfc_control req = {
		.op = cpu_to_le16(NFC_CONTROL_OPEN),
		.a = cpu_to_le64(op->target),
	}, reply;
	struct nfcm_channel *ch = op->ch;
	u32 handle = op->c.channel;
	u32 status = call(epoch, op, &req, &reply);

	op->c.channel = status ? 0 : handle;
	if (status) {
		xa_erase(&op->file->channels, handle);
		nfcm_channel_leave(ch);
		end_current(epoch, op, status, 0);
		return;
	}
	nfcm_mailbox_lock(ch->mailbox);
	nfcm_channel_opened(ch, le64_to_cpu(reply.a), le64_to_cpu(reply.b),
			    le64_to_cpu(reply.c));
	nfcm_mailbox_unlock(ch->mailbox);
	if (nfcm_file_bind(op->file, ch, handle)) {
		nfcm_mailbox_lock(ch->mailbox);
		nfcm_channel_close(ch, NULL);
		nfcm_mailbox_unlock(ch->mailbox);
	}
	end_current(epoch, op, NFC_OK, 0);
}

static void stop_end(struct nfcm_op *op)
{
	struct nfcm_process *p = container_of(op, struct nfcm_process, stop);
	struct nfcm_file *file = op->file;

	nfcm_requests_delist(&op->ch->epoch->control, p);
	nfcm_assert_left(&p->node);
	nfcm_assert_left(&op->node);
	nfcm_channel_put(op->ch);
	kfree(p);
	nfcm_file_live(file, -1);
	nfcm_file_put(file);
}

/* Stop a process; nobody waits for it. Takes ownership of p. */
void nfcm_control_stop(struct nfcm_epoch *epoch, struct nfcm_process *p)
{
	struct nfcm_op *op = &p->stop;
	struct nfc_control req = {
		.op = cpu_to_le16(NFC_CONTROL_STOP),
		.a = cpu_to_le64(p->id),
	};

	memcpy(op->c.payload, &req, sizeof(req));
	nfcm_control_submit(epoch, op);
}

/* Prepare the record of a process. */
static struct nfcm_process *process_new(struct nfcm_op *op)
{
	struct nfcm_process *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return NULL;
	INIT_LIST_HEAD(&p->node);
	INIT_LIST_HEAD(&p->beside);
	nfcm_op_init(&p->stop, NFCOMMS_OP_CONTROL, stop_end);
	nfcm_file_get(op->file);
	p->stop.file = op->file;
	p->stop.detached = true;
	kref_get(&op->ch->ref);
	p->stop.ch = op->ch;
	return p;
}

/* Run a program; the process belongs to the file. Worker. */
static u32 start(struct nfcm_epoch *epoch, struct nfcm_op *op,
		 struct nfc_control *req, struct nfc_control *reply, int *error)
{
	struct nfcm_process *p = process_new(op);
	u64 targets = le64_to_cpu(req->b);
	u32 status;

	*error = p ? 0 : ENOMEM;
	if (!p)
		return NFC_ENOMEM;
	nfcm_file_live(op->file, 1);
	nfcm_requests_enlist(&epoch->control, p);
	status = call(epoch, op, req, reply);
	p->id = le64_to_cpu(reply->a);
	p->first = le64_to_cpu(reply->b);
	p->targets = targets;
	p->epoch = epoch->layout.epoch;
	if (!status && (p->first >= epoch->layout.channels ||
			targets > epoch->layout.channels - p->first)) {
		nfcm_epoch_fail(epoch, NFC_EFAULT,
				"program started out of range");
		memset(reply, 0, sizeof(*reply));
		status = NFC_EFAULT;
	}
	if (status)
		stop_end(&p->stop);
	else if (!nfcm_file_adopt(op->file, p))
		nfcm_control_stop(epoch, p);
	return status;
}

/*
 * Send a STOP. NFC_EBUSY: the process is returning, send it again; after that
 * NFC_EINVAL means that it has returned. Worker.
 */
static u32 stop(struct nfcm_epoch *epoch, struct nfcm_op *op,
		struct nfc_control *req, struct nfc_control *reply)
{
	u64 id = le64_to_cpu(req->a);
	u32 number = epoch->layout.epoch;
	u32 status;

	if (!op->detached && !nfcm_file_owns(op->file, number, id)) {
		reply->op = req->op; /* as for a process that is not there */
		return NFC_EINVAL;
	}
	status = call(epoch, op, req, reply);
	if (status == NFC_EBUSY) {
		op->stop_sent = true;
		return status;
	}
	if (!op->detached && (!status || status == NFC_EINVAL))
		nfcm_file_disown(op->file, number, id);
	return op->stop_sent && status == NFC_EINVAL ? NFC_OK : status;
}

/* Send it again later, or give up; true if the request stays. Worker. */
static bool again(struct nfcm_epoch *epoch, struct nfcm_op *op)
{
	struct nfcm_controller *k = &epoch->control;

	if (READ_ONCE(op->cancelled) ||
	    (op->detached && ++op->tries > STOP_TRIES))
		return false;
	spin_lock(&k->lock);
	k->current_op = NULL;
	nfcm_requests_put_off(k, op, STOP_MS);
	spin_unlock(&k->lock);
	return true;
}

/* CONTROL. Worker. */
static void request(struct nfcm_epoch *epoch, struct nfcm_op *op)
{
	struct nfc_control req, reply = {};
	int error = 0;
	u32 status;

	memcpy(&req, op->c.payload, sizeof(req));
	switch (le16_to_cpu(req.op)) {
	case NFC_CONTROL_START:
		status = start(epoch, op, &req, &reply, &error);
		break;
	case NFC_CONTROL_STOP:
		status = stop(epoch, op, &req, &reply);
		if (status == NFC_EBUSY) {
			if (again(epoch, op))
				return;
			memset(&reply, 0, sizeof(reply));
			status = NFC_EWITHDRAWN;
		}
		break;
	case NFC_CONTROL_LOAD:
		req.a = cpu_to_le64(op->pins.size);
		fallthrough;
	default:
		status = call(epoch, op, &req, &reply);
	}
	if (reply.op) { /* the device's answer, whatever it is, is the reply */
		reply.status = cpu_to_le16((u16)status);
		status = NFC_OK;
	}
	nfcm_requests_answer(&reply, op->c.payload);
	end_current(epoch, op, status, error);
}

/* ---- the worker ---- */

/*
 * The next request; NULL if there is none. When the last one is done, so is the
 * worker.
 */
static struct nfcm_op *next(struct nfcm_controller *k)
{
	struct nfcm_op *op;
	bool only_later;

	do {
		spin_lock(&k->lock);
		nfcm_requests_send_again(k);
		op = nfcm_requests_step_up(k);
		k->current_op = op;
		only_later = !op && !list_empty(&k->later);
		if (!op && !only_later)
			k->running = false;
		spin_unlock(&k->lock);
		if (!only_later)
			return op;
		wait_event_timeout(k->wait, !list_empty_careful(&k->queue),
				   msecs_to_jiffies(STOP_MS));
	} while (true);
}

static void control_work(struct work_struct *work)
{
	struct nfcm_epoch *epoch = container_of(work, struct nfcm_epoch,
						control.work);
	struct nfcm_op *op;

	while ((op = next(&epoch->control))) {
		if (READ_ONCE(op->cancelled) && !op->stop_sent) {
			op->cancelled = true;
			if (op->opcode == NFCOMMS_OP_SUBSCRIBE) {
				xa_erase(&op->file->channels, op->c.channel);
				op->c.channel = 0;
				nfcm_channel_leave(op->ch);
			}
			end_current(epoch, op, NFC_EWITHDRAWN, 0);
		} else if (op->opcode == NFCOMMS_OP_SUBSCRIBE) {
			subscribe(epoch, op);
		} else {
			request(epoch, op);
		}
	}
	nfcm_epoch_put(epoch);
}

/* Before the epoch is published. No locks. */
void nfcm_control_init(struct nfcm_epoch *epoch)
{
	struct nfcm_controller *k = &epoch->control;

	INIT_WORK(&k->work, control_work);
	spin_lock_init(&k->lock);
	INIT_LIST_HEAD(&k->queue);
	INIT_LIST_HEAD(&k->later);
	INIT_LIST_HEAD(&k->processes);
	init_waitqueue_head(&k->wait);
}

/* Queue a request whose channel is set. False if the epoch has ended. */
static bool enqueue(struct nfcm_epoch *epoch, struct nfcm_op *op)
{
	struct nfcm_controller *k = &epoch->control;
	bool wake = false, open;

	spin_lock(&k->lock);
	open = k->ch;
	if (open) {
		op->place = NFCM_PLACE_CONTROL;
		nfcm_requests_line_up(k, op);
		wake = !k->running;
		k->running = true;
	}
	spin_unlock(&k->lock);
	if (wake) {
		kref_get(&epoch->ref);
		queue_work(nfcm_wq, &k->work);
	}
	wake_up_all(&k->wait);
	return open;
}

/* Give a SUBSCRIBE its channel and a handle that nobody can use yet. */
static u32 reserve(struct nfcm_epoch *epoch, struct nfcm_op *op)
{
	struct nfcm_file *file = op->file;
	struct nfcm_channel *ch;
	u32 handle;
	int rc;

	if (op->target >= epoch->layout.channels ||
	    op->target == NFC_TARGET_CONTROL)
		return NFC_ENOTARGET;
	ch = nfcm_channel_new(epoch, op->target, file);
	if (!ch)
		return NFC_ENOMEM;
	op->ch = ch;
	rc = nfcm_channel_enter(ch);
	if (rc)
		return rc == -EBUSY  ? NFC_EBUSY :
		       rc == -ENOMEM ? NFC_ENOMEM :
				       status_of_down(epoch);
	rc = xa_alloc_cyclic(&file->channels, &handle, NULL,
			     XA_LIMIT(1, INT_MAX), &file->next_handle,
			     GFP_KERNEL_ACCOUNT);
	if (rc < 0) {
		nfcm_channel_leave(ch);
		return NFC_ENOMEM;
	}
	op->c.channel = handle;
	return NFC_OK;
}

/* Take a request in: its channel, its memory, its place in the queue. */
static u32 take_in(struct nfcm_epoch *epoch, struct nfcm_op *op, int *error)
{
	u32 status = NFC_OK;
	int rc;

	if (op->opcode == NFCOMMS_OP_SUBSCRIBE)
		status = reserve(epoch, op);
	else if (!op->ch)
		op->ch = control_channel(epoch);
	if (status)
		return status;
	rc = op->ch ? nfcm_pins_all(op) : -ENODEV;
	if (!rc && enqueue(epoch, op))
		return NFC_OK;
	if (op->opcode == NFCOMMS_OP_SUBSCRIBE) {
		xa_erase(&op->file->channels, op->c.channel);
		nfcm_channel_leave(op->ch);
	}
	if (!rc || rc == -ENODEV)
		return status_of_down(epoch);
	*error = -rc;
	return rc == -ENOMEM ? NFC_ENOMEM : NFC_EINVAL;
}

/* A request of a file: SUBSCRIBE or CONTROL. It has exactly one completion. */
void nfcm_control_submit(struct nfcm_epoch *epoch, struct nfcm_op *op)
{
	int error = 0;
	u32 status = take_in(epoch, op, &error);

	if (!status)
		return;
	if (op->opcode == NFCOMMS_OP_SUBSCRIBE)
		op->c.channel = 0;
	end(op, status, error);
}

/* Take a request back, as far as the device did not take it. No locks. */
void nfcm_control_cancel(struct nfcm_op *op)
{
	struct nfcm_channel *ch = READ_ONCE(op->ch);

	WRITE_ONCE(op->cancelled, true);
	if (ch)
		wake_up_all(&ch->epoch->control.wait);
}

/* Take all requests of a file back. No locks. */
void nfcm_control_forget(struct nfcm_epoch *epoch, struct nfcm_file *file)
{
	struct nfcm_controller *k = &epoch->control;

	spin_lock(&k->lock);
	nfcm_requests_forget(k, &k->queue, file);
	nfcm_requests_forget(k, &k->later, file);
	if (k->current_op && k->current_op->file == file &&
	    !k->current_op->detached)
		WRITE_ONCE(k->current_op->cancelled, true);
	spin_unlock(&k->lock);
	wake_up_all(&k->wait);
}

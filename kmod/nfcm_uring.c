// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations by an io_uring: a CALL for which nobody waits. Its completion is the
 * CQE, besides the record that the caller named. Only for kernels that tell a driver
 * to end its commands (IO_URING_F_CANCEL): an operation may wait for ever, and a
 * ring whose commands do not end keeps the file, and a task that execs.
 */
#include <linux/fs.h>
#include <linux/io_uring/cmd.h>
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "nfcm_kmod.h"

enum {
	COMMAND_SIZE = 80, /* bytes that an SQE of 128 has for a command */
	FLAGS_SHIFT = 16, /* of the result: above the status */
};

static_assert(sizeof(struct nfcomms_call) <= COMMAND_SIZE);
static_assert(sizeof(struct nfcomms_cancel) <= COMMAND_SIZE);

static struct nfcm_op **op_of(struct io_uring_cmd *cmd)
{
	return io_uring_cmd_to_pdu(cmd, struct nfcm_op *);
}

/*
 * Copy the structure of a command, which begins with its size: nfcm_copy_in() for an
 * SQE. It is copied once, as its memory is the caller's.
 */
static int take(void *to, size_t ksize, size_t first,
		const struct io_uring_cmd *cmd)
{
	u8 data[COMMAND_SIZE];
	u32 size;

	memcpy(data, io_uring_sqe_cmd(cmd->sqe), sizeof(data));
	barrier_data(data);
	memcpy(&size, data, sizeof(size));
	if (size < first)
		return -EINVAL;
	if (size > sizeof(data) ||
	    (size > ksize && memchr_inv(data + ksize, 0, size - ksize)))
		return -E2BIG;
	memset(to, 0, ksize);
	memcpy(to, data, min_t(size_t, size, ksize));
	return 0;
}

/* ---- its end ---- */

/* Write the completion to the caller's memory, which is current's. */
static int write_record(const struct nfcm_op *op)
{
	const struct nfcm_uring *u = &op->uring;

	return copy_to_user(u64_to_user_ptr(u->record), &op->c,
			    min_t(size_t, u->size, sizeof(op->c))) ?
		       -EFAULT :
		       0;
}

/* The same, also for a thread that has ended, whose work a worker does. */
static int notify(const struct nfcm_op *op)
{
	struct mm_struct *mm = op->uring.mm;
	int rc;

	if (!op->uring.record)
		return 0;
	if (current->mm == mm)
		return write_record(op);
	if (!(current->flags & PF_KTHREAD) || !mmget_not_zero(mm))
		return -EFAULT;
	kthread_use_mm(mm);
	rc = write_record(op);
	kthread_unuse_mm(mm);
	mmput(mm);
	return rc;
}

/* Post the CQE. In the context of who submitted it, or a worker's. */
static void post(struct io_uring_cmd *cmd, unsigned int flags)
{
	struct nfcm_op *op = *op_of(cmd);
	const struct nfcomms_completion *c = &op->c;
	u64 value = c->opcode == NFCOMMS_OP_SUBSCRIBE ? c->channel : c->length;
	int rc = notify(op) ?: (int)(c->status | c->flags << FLAGS_SHIFT);

	mmdrop(op->uring.mm);
	io_uring_cmd_done(cmd, rc, value, flags);
	nfcm_op_put(op); /* until now a cancel could name it */
}

/* An operation has ended. No locks. */
static void end(struct nfcm_op *op)
{
	struct nfcm_file *file = op->file;

	nfcm_file_get(file); /* with the CQE all may go */
	nfcm_file_settle(op, false);
	io_uring_cmd_complete_in_task(op->uring.cmd, post);
	nfcm_file_live(file, -1);
	nfcm_file_put(file);
}

/* ---- its beginning ---- */

/* Find the bytes of a transfer in the buffer that the SQE names. */
static int find_buffer(struct io_uring_cmd *cmd, const struct nfcomms_op *in,
		       struct iov_iter *buffer)
{
	bool send = in->opcode == NFCOMMS_OP_SEND_IND;

	if (!send && in->opcode != NFCOMMS_OP_RECEIVE_IND)
		return -EINVAL;
	return io_uring_cmd_import_fixed(in->address, in->length,
					 send ? ITER_SOURCE : ITER_DEST, buffer,
					 cmd);
}

/* Begin an operation that is in order: from here on the CQE tells. */
static void start(struct nfcm_op *op, const struct nfcomms_op *in,
		  struct io_uring_cmd *cmd, unsigned int flags)
{
	op->end = end;
	op->uring.cmd = cmd;
	op->uring.mm = current->mm;
	mmgrab(current->mm);
	*op_of(cmd) = op;
	refcount_inc(&op->ref);
	io_uring_cmd_mark_cancelable(cmd, flags);
	nfcm_submit_begin(op->file, op, in->address);
	nfcm_op_put(op);
}

static int call(struct nfcm_file *file, struct io_uring_cmd *cmd,
		unsigned int flags)
{
	bool fixed = cmd->flags & IORING_URING_CMD_FIXED;
	struct nfcomms_call call;
	struct iov_iter buffer;
	struct nfcomms_op in;
	struct nfcm_op *op;
	int rc = take(&call, sizeof(call), NFCOMMS_CALL_SIZE_FIRST, cmd);

	if (rc)
		return rc;
	if (call.completion ?
		    call.completion_size < NFCOMMS_COMPLETION_SIZE_FIRST :
		    call.completion_size)
		return -EINVAL;
	rc = nfcm_submit_take(&call, &in);
	if (!rc && fixed)
		rc = find_buffer(cmd, &in, &buffer);
	if (rc)
		return rc;
	op = nfcm_submit_make(file, &in, false);
	if (IS_ERR(op)) /* io_uring would have a worker try once more */
		return op == ERR_PTR(-EAGAIN) ? -EBUSY : PTR_ERR(op);
	op->uring.record = call.completion;
	op->uring.size = call.completion_size;
	op->pins.fixed = fixed;
	if (fixed)
		op->pins.buffer = buffer;
	start(op, &in, cmd, flags);
	return -EIOCBQUEUED;
}

static int cancel(struct nfcm_file *file, struct io_uring_cmd *cmd)
{
	struct nfcomms_cancel c;
	int rc = take(&c, sizeof(c), NFCOMMS_CANCEL_SIZE_FIRST, cmd);

	return rc ?: nfcm_submit_cancel_all(file, &c);
}

/* A command of an io_uring. Does not wait, but for pages of the caller's own. */
int nfcm_uring_cmd(struct io_uring_cmd *cmd, unsigned int flags)
{
	struct nfcm_file *file = cmd->file->private_data;

	if (flags & IO_URING_F_CANCEL) { /* again and again, until it has ended */
		nfcm_submit_cancel(*op_of(cmd));
		return 0;
	}
	if (!(flags & IO_URING_F_SQE128))
		return -EOPNOTSUPP;
	switch (cmd->cmd_op) {
	case NFCOMMS_IOC_CALL:
		if (!(cmd->file->f_mode & FMODE_WRITE))
			return -EACCES;
		if (READ_ONCE(file->dev->removed))
			return -ENODEV;
		return call(file, cmd, flags);
	case NFCOMMS_IOC_CANCEL:
		return cancel(file, cmd);
	default:
		return -ENOTTY;
	}
}

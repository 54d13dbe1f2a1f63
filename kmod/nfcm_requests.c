// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control requests and processes. The queue: each file's next one is in it, and those
 * behind it wait there, so that files have their turns however many requests each has.
 */
#include "nfcm_kmod.h"

/* A request comes behind those of its file, if it has some. */
void nfcm_requests_line_up(struct nfcm_controller *k, struct nfcm_op *op)
{
	struct nfcm_op *first;

	lockdep_assert_held(&k->lock);
	list_for_each_entry(first, &k->queue, node)
		if (first->file == op->file) {
			list_add_tail(&op->node, &first->behind);
			return;
		}
	list_add_tail(&op->node, &k->queue);
}

/*
 * Take the first request out. The next one of its file comes behind those of
 * all others.
 */
struct nfcm_op *nfcm_requests_step_up(struct nfcm_controller *k)
{
	struct nfcm_op *op, *heir;

	lockdep_assert_held(&k->lock);
	op = list_first_entry_or_null(&k->queue, struct nfcm_op, node);
	if (!op)
		return NULL;
	list_del_init(&op->node);
	heir = list_first_entry_or_null(&op->behind, struct nfcm_op, node);
	if (heir) {
		list_del_init(&heir->node);
		list_splice_init(&op->behind, &heir->behind);
		list_add_tail(&heir->node, &k->queue);
	}
	return op;
}

/* Keep a STOP that the device has yet to carry out, to send it again. */
void nfcm_requests_put_off(struct nfcm_controller *k, struct nfcm_op *op,
			   unsigned int ms)
{
	lockdep_assert_held(&k->lock);
	op->again = jiffies + msecs_to_jiffies(ms);
	list_add_tail(&op->node, &k->later);
}

/* STOPs whose time has come have their turns like other requests. The oldest is first. */
void nfcm_requests_send_again(struct nfcm_controller *k)
{
	struct nfcm_op *op, *next;

	lockdep_assert_held(&k->lock);
	list_for_each_entry_safe(op, next, &k->later, node) {
		if (time_before(jiffies, op->again))
			break;
		list_del_init(&op->node);
		nfcm_requests_line_up(k, op);
	}
}

/* Requests of a file in a list are to end, but for those that nobody waits for. */
void nfcm_requests_forget(struct nfcm_controller *k, struct list_head *list,
			  struct nfcm_file *file)
{
	struct nfcm_op *op;

	lockdep_assert_held(&k->lock);
	list_for_each_entry(op, list, node) {
		if (op->file != file)
			continue;
		if (!op->detached)
			WRITE_ONCE(op->cancelled, true);
		nfcm_requests_forget(k, &op->behind, file); /* one deep */
	}
}

/* A process of a file: the device may be lost by it before it is said to have started. */
void nfcm_requests_enlist(struct nfcm_controller *k, struct nfcm_process *p)
{
	spin_lock(&k->lock);
	list_add_tail(&p->beside, &k->processes);
	spin_unlock(&k->lock);
}

/* It has ended. */
void nfcm_requests_delist(struct nfcm_controller *k, struct nfcm_process *p)
{
	spin_lock(&k->lock);
	list_del_init(&p->beside);
	spin_unlock(&k->lock);
}

/*
 * The device is lost, which each user with a process may have caused. False if there
 * was none.
 */
bool nfcm_requests_blame(struct nfcm_epoch *epoch)
{
	u64 loss = (u64)epoch->dev->minor << 32 | epoch->layout.epoch;
	struct nfcm_controller *k = &epoch->control;
	struct nfcm_process *p;
	bool any;

	spin_lock(&k->lock);
	any = !list_empty(&k->processes);
	list_for_each_entry(p, &k->processes, beside)
		nfcm_user_blame(p->stop.file->user, loss);
	spin_unlock(&k->lock);
	return any;
}

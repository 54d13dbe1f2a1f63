// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control requests and processes. The queue: each file's next one is in it, and those
 * behind it wait there, so that files have their turns however many requests each has.
 */
#include "nfcm_kmod.h"

static_assert(sizeof(struct nfcomms_request_start) == NFCOMMS_PAYLOAD_SIZE);
static_assert(sizeof(struct nfcomms_request_process) == NFCOMMS_PAYLOAD_SIZE);
static_assert(sizeof(struct nfcomms_request_load) == NFCOMMS_PAYLOAD_SIZE);
static_assert(sizeof(struct nfcomms_request_program) == NFCOMMS_PAYLOAD_SIZE);
static_assert(sizeof(struct nfcomms_request_memory) == NFCOMMS_PAYLOAD_SIZE);
static_assert((int)NFCOMMS_NAME_LENGTH == (int)NFC_NAME_SIZE);
static_assert((int)NFCOMMS_CONTROL_START == (int)NFC_CONTROL_START);
static_assert((int)NFCOMMS_CONTROL_STOP == (int)NFC_CONTROL_STOP);
static_assert((int)NFCOMMS_CONTROL_LOAD == (int)NFC_CONTROL_LOAD);
static_assert((int)NFCOMMS_CONTROL_PROGRAM == (int)NFC_CONTROL_PROGRAM);
static_assert((int)NFCOMMS_CONTROL_MEMORY == (int)NFC_CONTROL_MEMORY);
static_assert((int)NFCOMMS_CONTROL_RUNNING == (int)NFC_CONTROL_RUNNING);

/* A payload of user space, by each of its structures. */
union payload {
	struct nfcomms_request_start start;
	struct nfcomms_request_process process;
	struct nfcomms_request_load load;
	struct nfcomms_request_program program;
	struct nfcomms_request_memory memory;
	u8 bytes[NFCOMMS_PAYLOAD_SIZE];
};

/*
 * Move what a request has from one union to the other, which is zero: what is left
 * in the first one is what the request must not have.
 */
static int take_fields(union payload *p, struct nfc_control *out)
{
	u16 request = p->process.request;

	switch (request) {
	case NFCOMMS_CONTROL_START:
		if (p->start.name[NFCOMMS_NAME_LENGTH - 1])
			return -EINVAL;
		out->a = cpu_to_le64(p->start.first);
		out->b = cpu_to_le64(p->start.targets);
		out->c = cpu_to_le64(p->start.argument);
		memcpy(out->name, p->start.name, sizeof(out->name));
		p->start = (struct nfcomms_request_start){
			.status = p->start.status,
			.process = p->start.process,
			.rsvd = p->start.rsvd,
		};
		break;
	case NFCOMMS_CONTROL_STOP:
	case NFCOMMS_CONTROL_RUNNING:
		out->a = cpu_to_le64(p->process.process);
		p->process.process = 0;
		break;
	case NFCOMMS_CONTROL_PROGRAM:
		out->a = cpu_to_le64(p->program.index);
		p->program.index = 0;
		break;
	case NFCOMMS_CONTROL_MEMORY:
		out->a = cpu_to_le64(p->memory.kind);
		p->memory.kind = 0;
		break;
	case NFCOMMS_CONTROL_LOAD:
		break;
	default:
		return -EINVAL;
	}
	out->op = cpu_to_le16(request);
	p->process.request = 0;
	return 0;
}

/* The device's request of a CONTROL, if that is in order. in is the driver's own copy. */
int nfcm_requests_parse(const struct nfcomms_op *in, struct nfc_control *out)
{
	union payload p;
	int rc;

	memset(out, 0, sizeof(*out));
	memcpy(&p, in->payload, sizeof(p));
	rc = take_fields(&p, out);
	if (rc || memchr_inv(&p, 0, sizeof(p)))
		return -EINVAL;
	if (out->op == cpu_to_le16(NFC_CONTROL_LOAD))
		return in->length ? 0 : -EINVAL;
	return in->length || in->address ? -EINVAL : 0;
}

/* Translate the device's answer to a request for user space. */
void nfcm_requests_answer(const struct nfc_control *reply, u8 *to)
{
	union payload p = {};

	p.process.request = le16_to_cpu(reply->op);
	p.process.status = le16_to_cpu(reply->status);
	switch (p.process.request) {
	case NFCOMMS_CONTROL_START:
		p.start.process = le64_to_cpu(reply->a);
		p.start.first = (u32)le64_to_cpu(reply->b);
		break;
	case NFCOMMS_CONTROL_RUNNING:
		p.process.running = !!reply->b;
		break;
	case NFCOMMS_CONTROL_LOAD:
		if (p.process.status) /* b, c and the name are one text */
			memcpy(p.load.text,
			       (const u8 *)reply +
				       offsetof(struct nfc_control, b),
			       sizeof(p.load.text) - 1);
		else
			memcpy(p.load.text, reply->name,
			       sizeof(reply->name) - 1);
		break;
	case NFCOMMS_CONTROL_PROGRAM:
		memcpy(p.program.name, reply->name, sizeof(reply->name) - 1);
		break;
	case NFCOMMS_CONTROL_MEMORY:
		p.memory.base = le64_to_cpu(reply->a);
		p.memory.bytes = le64_to_cpu(reply->b);
		p.memory.unused = le64_to_cpu(reply->c);
		break;
	}
	memcpy(to, p.bytes, sizeof(p.bytes));
}

/* A request is queued behind those of its file, if it has some. */
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
 * Take the first request out. The next one of its file is queued behind those of
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

/* STOPs whose time has passed have their turns like other requests. The oldest is first. */
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

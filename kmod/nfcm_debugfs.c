// SPDX-License-Identifier: GPL-2.0-only
/* debugfs: nfcomms/nfcommsN/state shows rings, channels and what they wait for. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "nfcm_kmod.h"

static struct dentry *root;

static const char *const states[] = {
	[NFCM_STATE_IDLE] = "idle",	      [NFCM_STATE_OFFERED] = "offered",
	[NFCM_STATE_ANSWERING] = "answering", [NFCM_STATE_MOVING] = "moving",
	[NFCM_STATE_COMPLETE] = "complete",   [NFCM_STATE_GIVEN] = "given",
	[NFCM_STATE_POSTED] = "posted",
};

static void show_half(struct seq_file *m, const struct nfcm_half *half)
{
	const struct nfcm_half_core *core = half->core;

	lockdep_assert_held(&half->ch->mailbox->lock);
	seq_printf(m, " %s: %s id=%llu op=%u pending=%u shut=%u",
		   core->direction == NFC_H2D ? "h2d" : "d2h",
		   states[core->state], core->id,
		   half->op ? half->op->opcode : 0, half->pending, half->shut);
	if (!list_empty(&half->queue))
		seq_puts(m, " queued");
	if (!list_empty(&half->armed))
		seq_puts(m, " armed");
	if (!list_empty(&half->room))
		seq_puts(m, " room");
	if (core->held)
		seq_puts(m, " held");
	if (core->state == NFCM_STATE_MOVING)
		seq_printf(m, " lists=%llu/%llu/%llu bytes=%llu/%llu",
			   core->ledger.acked, core->ledger.sent,
			   half->op ? half->op->pins.lists : 0,
			   core->ledger.processed, core->ledger.size);
}

static void show_mailbox(struct seq_file *m, struct nfcm_mailbox *mailbox)
{
	struct nfcm_channel *ch;

	nfcm_mailbox_lock(mailbox);
	seq_printf(m,
		   "mailbox %u island %u%s put=%llu consumed=%llu taken=%llu reported=%llu row=%u\n",
		   mailbox->index, mailbox->island, mailbox->dead ? " dead" : "",
		   mailbox->tail, mailbox->consumed, mailbox->taken,
		   mailbox->reported, mailbox->longest_row);
	list_for_each_entry(ch, &mailbox->channels, node) {
		seq_printf(m, "channel %u handle %u park=%u closed=%u%s",
			   ch->id, ch->handle, ch->park, ch->closes_put,
			   ch->opening ? " opening" : "");
		show_half(m, &ch->half[NFC_H2D]);
		show_half(m, &ch->half[NFC_D2H]);
		seq_putc(m, '\n');
		if (seq_has_overflowed(m))
			break;
	}
	nfcm_mailbox_unlock(mailbox);
}

static void show_vectors(struct seq_file *m, struct nfcm_dev *dev)
{
	const struct nfcm_vector *v;

	for (v = dev->vector; v < dev->vector + dev->vectors; v++)
		seq_printf(m,
			   "vector %u interrupts=%llu messages=%llu holdoff=%u\n",
			   v->index, (u64)atomic64_read(&v->count),
			   READ_ONCE(v->messages), READ_ONCE(v->holdoff));
}

static int state_show(struct seq_file *m, void *unused)
{
	struct nfcm_dev *dev = m->private;
	struct nfcm_epoch *epoch = nfcm_epoch_get(dev);
	u32 i;

	seq_printf(m, "state %u vectors %u pinned %llu mapped %d\n",
		   nfcm_dev_state(dev), dev->vectors,
		   nfcm_counted(dev, NFCM_COUNT_PINNED),
		   atomic_read(&dev->mapped));
	show_vectors(m, dev);
	if (!epoch)
		return 0;
	seq_printf(m, "epoch %u down %d\n", epoch->layout.epoch,
		   atomic_read(&epoch->down));
	for (i = 0; i < epoch->mailboxes; i++)
		show_mailbox(m, &epoch->mailbox[i]);
	nfcm_epoch_put(epoch);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

/*
 * Once, before the first device. debugfs may be absent: nothing depends on it.
 */
void nfcm_debugfs_init(void)
{
	root = debugfs_create_dir(NFCM_NAME, NULL);
}

/* Once, after the last device. */
void nfcm_debugfs_exit(void)
{
	debugfs_remove(root);
}

/*
 * The file reads the device until nfcm_debugfs_remove(), which waits for
 * readers.
 */
void nfcm_debugfs_add(struct nfcm_dev *dev)
{
	dev->debugfs = debugfs_create_dir(dev_name(&dev->dev), root);
	debugfs_create_file("state", 0400, dev->debugfs, dev, &state_fops);
}

/* No locks: it waits for readers, and they take them. */
void nfcm_debugfs_remove(struct nfcm_dev *dev)
{
	debugfs_remove(dev->debugfs);
}

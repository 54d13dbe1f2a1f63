// SPDX-License-Identifier: GPL-2.0-only
/* debugfs: nfcomms/nfcommsN/state shows rings, channels and what they wait for. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "nfcm_kmod.h"

static struct dentry *root;

static const char *const phases[] = {
	[NFCM_PHASE_IDLE] = "idle",	      [NFCM_PHASE_OFFERED] = "offered",
	[NFCM_PHASE_ANSWERING] = "answering", [NFCM_PHASE_MOVING] = "moving",
	[NFCM_PHASE_COMPLETE] = "complete",
};

/* Must hold box. */
static void show_half(struct seq_file *m, const struct nfcm_half *half)
{
	const struct nfcm_half_core *core = half->core;

	seq_printf(m, " %s: %s id=%llu op=%u due=%u shut=%u",
		   core->direction == NFC_H2D ? "h2d" : "d2h",
		   phases[core->phase], core->id,
		   half->op ? half->op->opcode : 0, half->due, half->shut);
	if (!list_empty(&half->queue))
		seq_puts(m, " queued");
	if (!list_empty(&half->armed))
		seq_puts(m, " armed");
	if (!list_empty(&half->starved))
		seq_puts(m, " starved");
	if (core->held)
		seq_puts(m, " held");
	if (core->phase == NFCM_PHASE_MOVING)
		seq_printf(m, " lists=%llu/%llu/%llu bytes=%llu/%llu",
			   core->ledger.acked, core->ledger.sent,
			   core->ledger.lists, core->ledger.processed,
			   core->ledger.cut.size);
}

static void show_box(struct seq_file *m, struct nfcm_box *box)
{
	struct nfcm_channel *ch;

	nfcm_box_lock(box);
	seq_printf(m,
		   "mailbox %u island %u%s put=%llu consumed=%llu taken=%llu told=%llu\n",
		   box->index, box->island, box->dead ? " dead" : "", box->tail,
		   box->consumed, box->taken, box->told);
	list_for_each_entry(ch, &box->channels, node) {
		seq_printf(m, "channel %u handle %u park=%u said=%u%s", ch->id,
			   ch->handle, ch->park, ch->said,
			   ch->opening ? " opening" : "");
		show_half(m, &ch->half[NFC_H2D]);
		show_half(m, &ch->half[NFC_D2H]);
		seq_putc(m, '\n');
		if (seq_has_overflowed(m))
			break;
	}
	nfcm_box_unlock(box);
}

static int state_show(struct seq_file *m, void *unused)
{
	struct nfcm_dev *dev = m->private;
	struct nfcm_life *life = nfcm_life_get(dev);
	u32 i;

	seq_printf(m, "state %u vectors %u pinned %llu mapped %d\n",
		   nfcm_dev_state(dev), dev->vectors,
		   nfcm_counted(dev, NFCM_COUNT_PINNED),
		   atomic_read(&dev->mapped));
	if (!life)
		return 0;
	seq_printf(m, "epoch %u down %d\n", life->layout.epoch,
		   atomic_read(&life->down));
	for (i = 0; i < life->boxes; i++)
		show_box(m, &life->box[i]);
	nfcm_life_put(life);
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

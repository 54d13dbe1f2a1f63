// SPDX-License-Identifier: GPL-2.0-only
/*
 * Adaptive moderation: how far interrupts of a vector are apart, at least, by what
 * they bring. The kernel's library decides, as for network cards: one step on while
 * that brings more messages, or as many with fewer interrupts, else one back.
 */
#include "nfcm_compat.h"
#include "nfcm_kmod.h"

/* The library chose another step. */
static void apply(struct work_struct *work)
{
	struct dim *dim = container_of(work, struct dim, work);
	struct nfcm_vector *v = container_of(dim, struct nfcm_vector, dim);

	nfcm_dev_limit(v->dev);
	dim->state = DIM_START_MEASURE;
}

/* Before the vector's interrupts are enabled. */
void nfcm_moder_init(struct nfcm_vector *v)
{
	INIT_WORK(&v->dim.work, apply);
}

/* None arrives any more. Waits for the last, which takes epoch_mutex. */
void nfcm_moder_fini(struct nfcm_vector *v)
{
	lockdep_assert_not_held(&v->dev->epoch_mutex);
	cancel_work_sync(&v->dim.work);
}

/* An interrupt of the vector was served, and brought so many messages. In its thread. */
void nfcm_moder_sample(struct nfcm_vector *v, u32 messages)
{
	struct dim_sample now = {};

	WRITE_ONCE(v->messages, v->messages + messages);
	if (!nfcm_adapts(v->dev))
		return;
	dim_update_sample((u16)atomic64_read(&v->count), v->messages,
			  v->messages * NFC_SLOT_SIZE, &now);
	nfcm_net_dim(&v->dim, &now);
}

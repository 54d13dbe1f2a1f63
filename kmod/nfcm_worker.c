// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads that pin for callers that are elsewhere. They are the module's own, as
 * only a signal ends the wait for a page, and a kworker must not get one. A thread
 * starts when an operation finds none that rests, and ends when it has rested long.
 *
 * They are not frozen: before the system sleeps each device ends its epoch, which
 * takes the threads out of their waits.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "nfcm_kmod.h"

enum {
	WORKERS = 512, /* for all users */
	REST_MS = 10000,
	AGAIN_MS = 100, /* after a thread could not start */
};

static void start_workers(struct work_struct *work);

/* See the table of locks in nfcm_kmod.h: below pool_lock. Guards all down to ending. */
static DEFINE_SPINLOCK(workers_lock);
static LIST_HEAD(given); /* operations that no thread has taken yet */
static unsigned int givens; /* of them */
static unsigned int workers; /* threads that start, or did and were not seen to end; … */
static unsigned int resting; /* … those of them that start, or have nothing to do */
static bool ending;
static DECLARE_WAIT_QUEUE_HEAD(came);
static DECLARE_COMPLETION(ended); /* once for each thread */
static DECLARE_DELAYED_WORK(starting, start_workers);

/* Take the next operation, if there is one. */
static struct nfcm_op *take(void)
{
	struct nfcm_op *op;

	lockdep_assert_held(&workers_lock);
	op = list_first_entry_or_null(&given, struct nfcm_op, pins.node);
	if (op) {
		list_del_init(&op->pins.node);
		givens--;
	}
	return op;
}

/* The next operation; NULL if there was none for long, or the module ends. */
static struct nfcm_op *next_op(bool rests)
{
	long left = msecs_to_jiffies(REST_MS);
	struct nfcm_op *op;

	spin_lock(&workers_lock);
	if (!rests)
		resting++;
	while (!(op = take()) && left && !ending) {
		spin_unlock(&workers_lock);
		left = wait_event_idle_exclusive_timeout(came,
							 READ_ONCE(givens) ||
								 READ_ONCE(ending),
							 left);
		spin_lock(&workers_lock);
	}
	resting--;
	spin_unlock(&workers_lock);
	return op;
}

static int work_on(void *unused)
{
	struct nfcm_op *op = next_op(true);

	allow_signal(SIGKILL); /* from nfcm_pool_leave() */
	for (; op; op = next_op(false))
		nfcm_pins_serve(op);
	kthread_complete_and_exit(&ended, 0);
}

/* Should one more thread start? It counts from here on. */
static bool one_more(void)
{
	bool more;

	spin_lock(&workers_lock);
	while (try_wait_for_completion(&ended))
		workers--;
	more = givens > resting && workers < WORKERS;
	if (more) {
		workers++;
		resting++;
	}
	spin_unlock(&workers_lock);
	return more;
}

/* A thread did not start. */
static void not_started(void)
{
	spin_lock(&workers_lock);
	workers--;
	resting--;
	spin_unlock(&workers_lock);
}

static void start_workers(struct work_struct *work)
{
	while (one_more()) {
		if (!IS_ERR(kthread_run(work_on, NULL, "nfcomms_pin")))
			continue;
		not_started();
		queue_delayed_work(nfcm_wq, &starting,
				   msecs_to_jiffies(AGAIN_MS));
		return;
	}
}

/* Have a thread pin for an operation that has a worker's place. */
void nfcm_worker_give(struct nfcm_op *op)
{
	bool more;

	spin_lock(&workers_lock);
	list_add_tail(&op->pins.node, &given);
	more = ++givens > resting;
	spin_unlock(&workers_lock);
	wake_up(&came);
	if (more)
		mod_delayed_work(nfcm_wq, &starting, 0);
}

/* Take back an operation that was given; false if a thread has it already. */
bool nfcm_worker_take_back(struct nfcm_op *op)
{
	bool waits;

	spin_lock(&workers_lock);
	waits = !list_empty(&op->pins.node);
	if (waits) {
		list_del_init(&op->pins.node);
		givens--;
	}
	spin_unlock(&workers_lock);
	return waits;
}

/* The module ends, and nobody has an operation. */
void nfcm_workers_fini(void)
{
	cancel_delayed_work_sync(&starting);
	nfcm_assert_left(&given);
	spin_lock(&workers_lock);
	ending = true;
	spin_unlock(&workers_lock);
	wake_up_all(&came);
	for (; workers; workers--)
		wait_for_completion(&ended);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users with open files, and those beside whose processes a device was lost
 * lately. One such loss is repaired by itself, but a user who has several may
 * start no more.
 */
#include <linux/slab.h>

#include "nfcm_kmod.h"

enum {
	LOSSES = 3, /* of a user … */
	LOSSES_MS = 600000, /* … in so long */
};

/* A leaf, see nfcm_kmod.h: guards the list, and of each user files and losses. */
static DEFINE_SPINLOCK(users_lock);
static LIST_HEAD(users);

/* Forget losses of long ago; true if there are none. */
static bool is_blameless(struct nfcm_user *user)
{
	unsigned long end = user->lost_at + msecs_to_jiffies(LOSSES_MS);

	lockdep_assert_held(&users_lock);
	if (user->losses && time_after(jiffies, end))
		user->losses = 0;
	return !user->losses;
}

/* Move the records that nobody needs to a list. */
static void sweep(struct list_head *unused)
{
	struct nfcm_user *user, *next;

	lockdep_assert_held(&users_lock);
	list_for_each_entry_safe(user, next, &users, node)
		if (!user->files && is_blameless(user))
			list_move(&user->node, unused);
}

static void free_all(struct list_head *unused)
{
	struct nfcm_user *user, *next;

	list_for_each_entry_safe(user, next, unused, node) {
		nfcm_assert_left(&user->ready);
		nfcm_assert_left(&user->lacking);
		nfcm_assert_left(&user->holders);
		kfree(user);
	}
}

/* The user's record, with a reference; NULL without memory. */
struct nfcm_user *nfcm_user_get(kuid_t uid)
{
	struct nfcm_user *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL), *u;

	spin_lock(&users_lock);
	list_for_each_entry(u, &users, node)
		if (uid_eq(u->uid, uid))
			break;
	if (list_entry_is_head(u, &users, node) && fresh) {
		fresh->uid = uid;
		INIT_LIST_HEAD(&fresh->ready);
		INIT_LIST_HEAD(&fresh->lacking);
		INIT_LIST_HEAD(&fresh->holders);
		list_add(&fresh->node, &users);
		u = fresh;
		fresh = NULL;
	}
	if (list_entry_is_head(u, &users, node))
		u = NULL;
	else
		u->files++;
	spin_unlock(&users_lock);
	kfree(fresh);
	return u;
}

/* A file of the user is no longer there. */
void nfcm_user_put(struct nfcm_user *user)
{
	LIST_HEAD(unused);

	spin_lock(&users_lock);
	user->files--;
	sweep(&unused);
	spin_unlock(&users_lock);
	free_all(&unused);
}

/* A process of the user ran in an epoch that was lost. */
void nfcm_user_blame(struct nfcm_user *user, u64 loss)
{
	spin_lock(&users_lock);
	if (is_blameless(user))
		user->lost_at = jiffies;
	if (user->loss != loss)
		user->losses++;
	user->loss = loss;
	spin_unlock(&users_lock);
}

/* Had the user so few losses that more processes may run? */
bool nfcm_user_may_start(struct nfcm_user *user)
{
	bool may;

	spin_lock(&users_lock);
	may = is_blameless(user) || user->losses < LOSSES;
	spin_unlock(&users_lock);
	return may;
}

/* The module ends, and nobody has a file. */
void nfcm_users_fini(void)
{
	free_all(&users);
}

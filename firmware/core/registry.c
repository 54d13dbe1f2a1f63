// SPDX-License-Identifier: MIT
/*
 * The programs that Start knows by name: the device's own, and those of loaded
 * images. An image stays as long as it has users: names here that lead to it,
 * and processes that run one of its programs. A program that is loaded again
 * takes the place of the one of its name; processes that run that go on.
 */
#include "calls.h"

static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static bool name_fits(const char *name)
{
	for (int i = 0; i < NFC_NAME_SIZE; i++)
		if (!name[i])
			return i > 0;
	return false;
}

/* Each program is one this firmware can run, and no name comes twice. */
static int check_table(const struct nfc_program *table)
{
	for (const struct nfc_program *p = table; p->name; p++) {
		if (p->abi != NFC_PROGRAM_ABI)
			return -NFC_EABI;
		if (!name_fits(p->name) || !p->main)
			return -NFC_EINVAL;
		if (p->stack > NFC_STACK_MAX)
			return -NFC_ETOOLARGE;
		for (const struct nfc_program *q = table; q != p; q++)
			if (same_name(p->name, q->name))
				return -NFC_EINVAL;
	}
	return 0;
}

/* NULL: no such name. Must hold the device's lock. */
static struct nfc_entry *entry_of(struct nfc_device *dev, const char *name)
{
	for (uint32_t i = 0; i < dev->program_count; i++)
		if (same_name(dev->programs[i].program->name, name))
			return &dev->programs[i];
	return NULL;
}

/* May all of these be entered? Must hold the device's lock. */
static int room_for(struct nfc_device *dev, const struct nfc_program *table,
		    bool loaded)
{
	uint32_t more = 0;

	for (const struct nfc_program *p = table; p->name; p++) {
		const struct nfc_entry *e = entry_of(dev, p->name);

		if (e && (!loaded || !e->loaded))
			return -NFC_EBUSY;
		more += !e;
	}
	return more > NFC_PROGRAMS - dev->program_count ? -NFC_ENOMEM : 0;
}

/* Must hold the device's lock; there is room. */
static void enter(struct nfc_device *dev, const struct nfc_program *table,
		  struct nfc_loaded *loaded)
{
	for (const struct nfc_program *p = table; p->name; p++) {
		struct nfc_entry *e = entry_of(dev, p->name);

		if (!e)
			e = &dev->programs[dev->program_count++];
		else
			e->loaded->users--;
		*e = (struct nfc_entry){ p, loaded };
		if (loaded)
			loaded->users++;
	}
}

/* Take out an image that nobody uses; false: there is none. */
static bool take_unused(struct nfc_device *dev, struct nfc_image *image)
{
	bool found = false;

	nfc_lock(dev);
	for (int i = 0; i < NFC_IMAGES && !found; i++) {
		struct nfc_loaded *l = &dev->loaded[i];

		if (!l->image.handle || l->users)
			continue;
		*image = l->image;
		l->image.handle = NULL;
		found = true;
	}
	nfc_unlock(dev);
	return found;
}

static void unload_unused(struct nfc_device *dev)
{
	struct nfc_image image;

	while (take_unused(dev, &image))
		dev->port->unload(dev->port->self, image.handle);
}

int nfc_device_register(struct nfc_device *dev, const struct nfc_program *table)
{
	int rc = check_table(table);

	if (rc)
		return rc;
	nfc_lock(dev);
	rc = room_for(dev, table, false);
	if (!rc)
		enter(dev, table, NULL);
	nfc_unlock(dev);
	return rc;
}

static struct nfc_loaded *free_place(struct nfc_device *dev)
{
	for (int i = 0; i < NFC_IMAGES; i++)
		if (!dev->loaded[i].image.handle)
			return &dev->loaded[i];
	return NULL;
}

int nfc_programs_add(struct nfc_device *dev, const struct nfc_image *image)
{
	struct nfc_loaded *place;
	int rc = image->table->name ? check_table(image->table) : -NFC_EINVAL;

	if (rc)
		return rc;
	nfc_lock(dev);
	place = free_place(dev);
	rc = place ? room_for(dev, image->table, true) : -NFC_ENOMEM;
	if (!rc) {
		place->image = *image;
		enter(dev, image->table, place);
	}
	nfc_unlock(dev);
	unload_unused(dev); /* what was replaced */
	return rc;
}

bool nfc_program_use(struct nfc_device *dev, const char *name,
		     struct nfc_entry *out)
{
	struct nfc_entry *e;

	nfc_lock(dev);
	e = entry_of(dev, name);
	if (e) {
		*out = *e;
		if (e->loaded)
			e->loaded->users++;
	}
	nfc_unlock(dev);
	return e != NULL;
}

void nfc_program_leave(struct nfc_device *dev, struct nfc_loaded *loaded)
{
	if (!loaded)
		return;
	nfc_lock(dev);
	loaded->users--;
	nfc_unlock(dev);
	unload_unused(dev);
}

const char *nfc_program_name(struct nfc_device *dev, uint64_t index,
			     char name[NFC_NAME_SIZE])
{
	const char *from = NULL;

	nfc_lock(dev);
	if (index < dev->program_count)
		from = dev->programs[index].program->name;
	for (int i = 0; from && i < NFC_NAME_SIZE; i++) {
		name[i] = from[i];
		if (!from[i])
			break;
	}
	nfc_unlock(dev);
	return from ? name : NULL;
}

void nfc_programs_drop(struct nfc_device *dev)
{
	dev->program_count = 0;
	for (int i = 0; i < NFC_IMAGES; i++)
		dev->loaded[i].users = 0;
	unload_unused(dev);
}

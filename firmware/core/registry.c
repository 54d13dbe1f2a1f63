// SPDX-License-Identifier: MIT
/*
 * The programs that Start knows by name: the device's own, and those of the images
 * that a host loaded. An image stays as long as it has users: names here that lead to it,
 * and processes that run one of its programs. A program that is loaded again
 * takes the place of the one of its name; processes that run the old one continue.
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

/*
 * Can this firmware run a program, and is its name the first of that name in
 * its table?
 */
static int check_program(const struct nfc_program *table,
			 const struct nfc_program *p, const char **why)
{
	*why = "was built for another version";
	if (p->abi != NFC_PROGRAM_ABI)
		return -NFC_EABI;
	*why = "has a name of no or over 23 characters";
	if (!name_fits(p->name))
		return -NFC_EINVAL;
	*why = "has a program without a function";
	if (!p->main)
		return -NFC_EINVAL;
	*why = "asks for a stack over 16 MiB";
	if (p->stack > NFC_STACK_MAX)
		return -NFC_ETOOLARGE;
	*why = "has two programs of one name";
	for (const struct nfc_program *q = table; q != p; q++)
		if (same_name(p->name, q->name))
			return -NFC_EINVAL;
	return 0;
}

static int check_table(const struct nfc_program *table, const char **why)
{
	int rc = 0;

	for (const struct nfc_program *p = table; p->name && !rc; p++)
		rc = check_program(table, p, why);
	return rc;
}

/* NULL: no such name. */
static struct nfc_entry *entry_of(struct nfc_entry *list, uint32_t count,
				  const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (same_name(list[i].program->name, name))
			return &list[i];
	return NULL;
}

/* One of the device's own. Must hold its lock. */
static struct nfc_entry *own_entry(struct nfc_device *dev, const char *name)
{
	return entry_of(dev->programs, dev->program_count, name);
}

/* One of an image of the host. Must hold its lock. */
static struct nfc_entry *image_entry(struct nfc_host *host, const char *name)
{
	return entry_of(host->programs, host->program_count, name);
}

/* May all programs of an image be entered? Must hold both locks. */
static int room_for(struct nfc_host *host, const struct nfc_program *table,
		    const char **why)
{
	uint32_t more = 0;

	*why = "has a name that one of the device's has";
	for (const struct nfc_program *p = table; p->name; p++) {
		if (own_entry(host->dev, p->name))
			return -NFC_EBUSY;
		more += !image_entry(host, p->name);
	}
	*why = "has more programs than there are places";
	return more > NFC_PROGRAMS - host->program_count ? -NFC_ENOMEM : 0;
}

/* Enter the programs of an image. Must hold the host's lock; there is room. */
static void enter(struct nfc_host *host, const struct nfc_program *table,
		  struct nfc_loaded *loaded)
{
	for (const struct nfc_program *p = table; p->name; p++) {
		struct nfc_entry *e = image_entry(host, p->name);

		if (!e)
			e = &host->programs[host->program_count++];
		else
			e->loaded->users--;
		*e = (struct nfc_entry){ p, loaded };
		loaded->users++;
	}
}

/* Remove an image that has no user; false: there is none. */
static bool take_unused(struct nfc_host *host, struct nfc_image *image)
{
	bool found = false;

	nfc_lock(&host->lock);
	for (int i = 0; i < NFC_IMAGES && !found; i++) {
		struct nfc_loaded *l = &host->loaded[i];

		if (!l->image.handle || l->users)
			continue;
		*image = l->image;
		l->image.handle = NULL;
		found = true;
	}
	nfc_unlock(&host->lock);
	return found;
}

static void unload_unused(struct nfc_host *host)
{
	const struct nfc_port *port = host->dev->port;
	struct nfc_image image;

	while (take_unused(host, &image))
		port->unload(port->self, image.handle);
}

int nfc_device_register(struct nfc_device *dev, const struct nfc_program *table)
{
	const char *why;
	int rc = check_table(table, &why);
	uint32_t more = 0;

	if (rc)
		return rc;
	nfc_lock(&dev->lock);
	for (const struct nfc_program *p = table; p->name; p++, more++)
		if (own_entry(dev, p->name))
			rc = -NFC_EBUSY;
	if (!rc && more > NFC_PROGRAMS - dev->program_count)
		rc = -NFC_ENOMEM;
	for (uint32_t i = 0; i < more && !rc; i++)
		dev->programs[dev->program_count++] = (struct nfc_entry){
			&table[i], NULL
		};
	nfc_unlock(&dev->lock);
	return rc;
}

static struct nfc_loaded *free_place(struct nfc_host *host)
{
	for (int i = 0; i < NFC_IMAGES; i++)
		if (!host->loaded[i].image.handle)
			return &host->loaded[i];
	return NULL;
}

int nfc_programs_add(struct nfc_host *host, const struct nfc_image *image,
		     const char **why)
{
	struct nfc_loaded *place;
	int rc = check_table(image->table, why);

	if (rc)
		return rc;
	*why = "has no programs";
	if (!image->table->name)
		return -NFC_EINVAL;
	nfc_lock(&host->dev->lock);
	nfc_lock(&host->lock);
	place = free_place(host);
	*why = "is one more than there is room for";
	rc = place ? room_for(host, image->table, why) : -NFC_ENOMEM;
	if (!rc) {
		place->image = *image;
		enter(host, image->table, place);
	}
	nfc_unlock(&host->lock);
	nfc_unlock(&host->dev->lock);
	unload_unused(host); /* what was replaced */
	return rc;
}

bool nfc_program_use(struct nfc_host *host, const char *name,
		     struct nfc_entry *out)
{
	struct nfc_entry *e;

	nfc_lock(&host->dev->lock);
	nfc_lock(&host->lock);
	e = own_entry(host->dev, name);
	if (!e)
		e = image_entry(host, name);
	if (e) {
		*out = *e;
		if (e->loaded)
			e->loaded->users++;
	}
	nfc_unlock(&host->lock);
	nfc_unlock(&host->dev->lock);
	return e != NULL;
}

void nfc_program_leave(struct nfc_host *host, struct nfc_loaded *loaded)
{
	if (!loaded)
		return;
	nfc_lock(&host->lock);
	loaded->users--;
	nfc_unlock(&host->lock);
	unload_unused(host);
}

const char *nfc_program_name(struct nfc_host *host, uint64_t index,
			     char name[NFC_NAME_SIZE])
{
	struct nfc_device *dev = host->dev;
	const char *from = NULL;

	nfc_lock(&dev->lock);
	nfc_lock(&host->lock);
	if (index < dev->program_count)
		from = dev->programs[index].program->name;
	else if (index - dev->program_count < host->program_count)
		from = host->programs[index - dev->program_count].program->name;
	for (int i = 0; from && i < NFC_NAME_SIZE; i++) {
		name[i] = from[i];
		if (!from[i])
			break;
	}
	nfc_unlock(&host->lock);
	nfc_unlock(&dev->lock);
	return from ? name : NULL;
}

void nfc_programs_drop(struct nfc_host *host)
{
	host->program_count = 0;
	for (int i = 0; i < NFC_IMAGES; i++)
		host->loaded[i].users = 0;
	unload_unused(host);
}

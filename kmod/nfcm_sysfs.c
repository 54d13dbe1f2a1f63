// SPDX-License-Identifier: GPL-2.0-only
/* Attributes of /sys/class/nfcomms/nfcommsN; Documentation/ABI lists them. */
#include <linux/sysfs.h>

#include "nfcm_kmod.h"

static ssize_t state_show(struct device *d, struct device_attribute *attr,
			  char *buf)
{
	static const char *const names[] = {
		[NFCOMMS_STATE_READY] = "ready",
		[NFCOMMS_STATE_FAULT] = "fault",
		[NFCOMMS_STATE_LOST] = "lost",
		[NFCOMMS_STATE_RESETTING] = "resetting",
		[NFCOMMS_STATE_REMOVED] = "removed",
	};
	u32 state = nfcm_dev_state(dev_get_drvdata(d));

	return sysfs_emit(buf, "%s\n", names[state]);
}
static DEVICE_ATTR_RO(state);

static ssize_t vectors_show(struct device *d, struct device_attribute *attr,
			    char *buf)
{
	struct nfcm_dev *dev = dev_get_drvdata(d);

	return sysfs_emit(buf, "%u\n", dev->vectors);
}
static DEVICE_ATTR_RO(vectors);

/* A field of the present epoch's layout. */
static ssize_t show_layout(struct device *d, char *buf, size_t at)
{
	struct nfcm_epoch *epoch = nfcm_epoch_get(dev_get_drvdata(d));
	u32 value;

	if (!epoch)
		return -ENODEV;
	value = *(const u32 *)((const char *)&epoch->layout + at);
	nfcm_epoch_put(epoch);
	return sysfs_emit(buf, "%u\n", value);
}

#define LAYOUT_ATTR(name, field)                                          \
	static ssize_t name##_show(struct device *d,                      \
				   struct device_attribute *a, char *buf) \
	{                                                                 \
		return show_layout(d, buf,                                \
				   offsetof(struct nfcm_layout, field));  \
	}                                                                 \
	static DEVICE_ATTR_RO(name)

LAYOUT_ATTR(epoch, epoch);
LAYOUT_ATTR(channels, channels);
LAYOUT_ATTR(mailboxes, mailboxes);
LAYOUT_ATTR(islands, islands);
LAYOUT_ATTR(slots, slots);
LAYOUT_ATTR(window, window);

/* Counters since the driver took the device. */
#define COUNT_ATTR(name, counter)                                             \
	static ssize_t name##_show(struct device *d,                          \
				   struct device_attribute *attr, char *buf)  \
	{                                                                     \
		return sysfs_emit(buf, "%llu\n",                              \
				  nfcm_counted(dev_get_drvdata(d), counter)); \
	}                                                                     \
	static DEVICE_ATTR_RO(name)

COUNT_ATTR(interrupts, NFCM_COUNT_INTERRUPTS);
COUNT_ATTR(spurious, NFCM_COUNT_SPURIOUS);
COUNT_ATTR(doorbells, NFCM_COUNT_DOORBELLS);
COUNT_ATTR(dropped, NFCM_COUNT_DROPPED);
COUNT_ATTR(faults, NFCM_COUNT_FAULTS);
COUNT_ATTR(resets, NFCM_COUNT_RESETS);
COUNT_ATTR(pinned, NFCM_COUNT_PINNED);

/* A limit of each device, which begins as the module's parameter of that name. */
struct limit_attr {
	struct device_attribute attr;
	u32 at; /* in struct nfcm_limits */
	u32 least;
	u32 most;
	bool kept; /* by the device, in a register */
};

static const struct limit_attr *limit_attr(struct device_attribute *attr)
{
	return container_of(attr, struct limit_attr, attr);
}

static void *limit_of(struct device *d, struct device_attribute *attr)
{
	struct nfcm_dev *dev = dev_get_drvdata(d);

	return (char *)&dev->limits + limit_attr(attr)->at;
}

/* A limit was stored: the device has to know of some. */
static ssize_t stored(struct device *d, struct device_attribute *attr, size_t n)
{
	if (limit_attr(attr)->kept)
		nfcm_dev_limit(dev_get_drvdata(d));
	return n;
}

static ssize_t limit_show(struct device *d, struct device_attribute *attr,
			  char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(*(u32 *)limit_of(d, attr)));
}

static ssize_t limit_store(struct device *d, struct device_attribute *attr,
			   const char *buf, size_t n)
{
	const struct limit_attr *limit = limit_attr(attr);
	u32 value;
	int rc = kstrtou32(buf, 0, &value);

	if (rc)
		return rc;
	if (value < limit->least || value > limit->most)
		return -EINVAL;
	WRITE_ONCE(*(u32 *)limit_of(d, attr), value);
	return stored(d, attr, n);
}

static ssize_t flag_show(struct device *d, struct device_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(*(bool *)limit_of(d, attr)));
}

static ssize_t flag_store(struct device *d, struct device_attribute *attr,
			  const char *buf, size_t n)
{
	bool value;
	int rc = kstrtobool(buf, &value);

	if (rc)
		return rc;
	WRITE_ONCE(*(bool *)limit_of(d, attr), value);
	return stored(d, attr, n);
}

#define LIMIT_ATTR(kind, name, field, low, high, in_device)            \
	static struct limit_attr dev_attr_##name = {                   \
		.attr = __ATTR(name, 0644, kind##_show, kind##_store), \
		.at = offsetof(struct nfcm_limits, field),             \
		.least = (low),                                        \
		.most = (high),                                        \
		.kept = (in_device),                                   \
	}

LIMIT_ATTR(limit, holdoff, holdoff, 0, NFCM_HOLDOFF_MAX, true);
LIMIT_ATTR(limit, watchdog_timeout_ms, watchdog_timeout_ms, 0,
	   NFCM_WATCHDOG_MS_MAX, true);
LIMIT_ATTR(limit, max_operations, max_operations, 1, NFCM_OPERATIONS_MAX, false);
LIMIT_ATTR(limit, cancel_timeout_ms, cancel_timeout_ms, 0, U32_MAX, false);
LIMIT_ATTR(limit, heartbeat_timeout_ms, heartbeat_timeout_ms, 0, U32_MAX, false);
LIMIT_ATTR(limit, heartbeat_misses, heartbeat_misses, 0, U32_MAX, false);
LIMIT_ATTR(limit, stall_timeout_ms, stall_timeout_ms, 0, U32_MAX, false);
LIMIT_ATTR(limit, busy_poll_max, busy_poll_max, 0, NFCM_BUSY_POLL_MAX, false);
LIMIT_ATTR(flag, adaptive, adaptive, 0, 1, true);
LIMIT_ATTR(flag, recovery, recovery, 0, 1, false);
LIMIT_ATTR(flag, register_access, register_access, 0, 1, false);

/* The card's own number, as lspci has it; only of cards that have one. */
static ssize_t serial_show(struct device *d, struct device_attribute *attr,
			   char *buf)
{
	struct nfcm_dev *dev = dev_get_drvdata(d);
	__be64 serial = cpu_to_be64(pci_get_dsn(dev->pdev));

	return sysfs_emit(buf, "%8phD\n", &serial);
}
static DEVICE_ATTR_RO(serial);

static struct attribute *nfcm_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_vectors.attr,
	&dev_attr_epoch.attr,
	&dev_attr_channels.attr,
	&dev_attr_mailboxes.attr,
	&dev_attr_islands.attr,
	&dev_attr_slots.attr,
	&dev_attr_window.attr,
	&dev_attr_interrupts.attr,
	&dev_attr_spurious.attr,
	&dev_attr_doorbells.attr,
	&dev_attr_dropped.attr,
	&dev_attr_faults.attr,
	&dev_attr_resets.attr,
	&dev_attr_pinned.attr,
	&dev_attr_holdoff.attr.attr,
	&dev_attr_adaptive.attr.attr,
	&dev_attr_watchdog_timeout_ms.attr.attr,
	&dev_attr_max_operations.attr.attr,
	&dev_attr_cancel_timeout_ms.attr.attr,
	&dev_attr_heartbeat_timeout_ms.attr.attr,
	&dev_attr_heartbeat_misses.attr.attr,
	&dev_attr_stall_timeout_ms.attr.attr,
	&dev_attr_busy_poll_max.attr.attr,
	&dev_attr_recovery.attr.attr,
	&dev_attr_register_access.attr.attr,
	NULL,
};

static const struct attribute_group nfcm_group = { .attrs = nfcm_attrs };

static struct attribute *card_attrs[] = { &dev_attr_serial.attr, NULL };

static umode_t card_visible(struct kobject *k, struct attribute *a, int n)
{
	struct nfcm_dev *dev = dev_get_drvdata(kobj_to_dev(k));

	return pci_get_dsn(dev->pdev) ? a->mode : 0;
}

static const struct attribute_group card_group = {
	.attrs = card_attrs,
	.is_visible = card_visible,
};

const struct attribute_group *nfcm_groups[] = { &nfcm_group, &card_group, NULL };

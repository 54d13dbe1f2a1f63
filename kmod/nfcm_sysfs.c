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

/* The limit of this device that an attribute names. */
static u32 *limit_of(struct device *d, struct device_attribute *attr)
{
	struct dev_ext_attribute *e = container_of(attr,
						   struct dev_ext_attribute,
						   attr);
	struct nfcm_dev *dev = dev_get_drvdata(d);

	return (u32 *)((char *)&dev->limits + (unsigned long)e->var);
}

static ssize_t limit_show(struct device *d, struct device_attribute *attr,
			  char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(*limit_of(d, attr)));
}

static ssize_t limit_store(struct device *d, struct device_attribute *attr,
			   const char *buf, size_t n)
{
	u32 value;
	int rc = kstrtou32(buf, 0, &value);

	if (rc)
		return rc;
	WRITE_ONCE(*limit_of(d, attr), value);
	return n;
}

/* The module's parameters are what they begin with. */
#define LIMIT_ATTR(name, field)                              \
	static struct dev_ext_attribute dev_attr_##name = {  \
		__ATTR(name, 0644, limit_show, limit_store), \
		(void *)offsetof(struct nfcm_limits, field), \
	}

LIMIT_ATTR(cancel_timeout_ms, cancel_timeout_ms);
LIMIT_ATTR(heartbeat_timeout_ms, heartbeat_timeout_ms);
LIMIT_ATTR(heartbeat_misses, heartbeat_misses);
LIMIT_ATTR(stall_timeout_ms, stall_timeout_ms);

/* The same of what is on or off. */
#define FLAG_ATTR(name, field)                               \
	static struct dev_ext_attribute dev_attr_##name = {  \
		__ATTR(name, 0644, flag_show, flag_store),   \
		(void *)offsetof(struct nfcm_limits, field), \
	}

static bool *flag_of(struct device *d, struct device_attribute *attr)
{
	return (bool *)limit_of(d, attr);
}

static ssize_t flag_show(struct device *d, struct device_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(*flag_of(d, attr)));
}

static ssize_t flag_store(struct device *d, struct device_attribute *attr,
			  const char *buf, size_t n)
{
	bool value;
	int rc = kstrtobool(buf, &value);

	if (rc)
		return rc;
	WRITE_ONCE(*flag_of(d, attr), value);
	return n;
}

FLAG_ATTR(recovery, recovery);
FLAG_ATTR(register_access, register_access);

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
	&dev_attr_cancel_timeout_ms.attr.attr,
	&dev_attr_heartbeat_timeout_ms.attr.attr,
	&dev_attr_heartbeat_misses.attr.attr,
	&dev_attr_stall_timeout_ms.attr.attr,
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

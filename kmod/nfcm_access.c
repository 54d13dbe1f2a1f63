// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers and interrupts for administrators, past the driver, by a node of their
 * own. core/access.c decides which of them may be accessed; no message passes through
 * this file.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/uaccess.h>

#include "nfcm_kmod.h"
#include "trace.h"
#include "uapi/nfcomms_debug.h"

static_assert(sizeof(struct nfcomms_access) >= NFCOMMS_ACCESS_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_interrupt) >= NFCOMMS_INTERRUPT_SIZE_FIRST);

/* An open file of the node. */
struct registers_file {
	struct nfcm_dev *dev;
	u32 off; /* vectors that it switched off; under the device's epoch_mutex */
};

static_assert(NFC_VECTORS_MAX <= 32);

/* May the caller reach past the driver? */
static int permit(const struct nfcm_dev *dev)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!READ_ONCE(dev->limits.register_access))
		return -EOPNOTSUPP;
	return security_locked_down(LOCKDOWN_PCI_ACCESS);
}

/* Bytes of memory of a BAR; 0 if it has none. */
static u64 bar_memory(struct pci_dev *pdev, u32 bar)
{
	if (bar >= PCI_STD_NUM_BARS ||
	    !(pci_resource_flags(pdev, bar) & IORESOURCE_MEM))
		return 0;
	return pci_resource_len(pdev, bar);
}

/* Before the access: it may be the last that the machine does. */
static void log_access(struct nfcm_dev *dev, const struct nfcomms_access *a)
{
	uid_t uid = from_kuid(&init_user_ns, current_uid());

	if (a->flags & NFCOMMS_ACCESS_WRITE)
		dev_notice_ratelimited(&dev->dev,
				       "%s[%d] of user %u writes %#llx to BAR %u at %#llx, %u bytes\n",
				       current->comm, task_pid_nr(current), uid,
				       a->value, a->bar, a->offset, a->width);
	else
		dev_notice_ratelimited(&dev->dev,
				       "%s[%d] of user %u reads BAR %u at %#llx, %u bytes\n",
				       current->comm, task_pid_nr(current), uid,
				       a->bar, a->offset, a->width);
}

/* The access itself; *value is written or read. */
static void touch_register(void __iomem *at, u32 width, bool write, u64 *value)
{
	if (write && width == 4)
		writel((u32)*value, at);
	else if (write)
		writeq(*value, at);
	else if (width == 4)
		*value = readl(at);
	else
		*value = readq(at);
}

/*
 * Make an access that is in order, through a mapping of its own: most BARs have none.
 * epoch_mutex is held so that the function is there and awake.
 */
static int make_access(struct nfcm_dev *dev, struct nfcomms_access *a)
{
	bool write = a->flags & NFCOMMS_ACCESS_WRITE;
	void __iomem *at;

	lockdep_assert_held(&dev->epoch_mutex);
	if (dev->removed || (!dev->away && nfcm_hw_gone(dev)))
		return -ENODEV;
	if (dev->away)
		return -EBUSY;
	at = pci_iomap_range(dev->pdev, a->bar, a->offset, a->width);
	if (!at)
		return -ENOMEM;
	log_access(dev, a);
	touch_register(at, a->width, write, &a->value);
	trace_nfcomms_access(dev->minor, a);
	pci_iounmap(dev->pdev, at);
	return 0;
}

/*
 * Take epoch_mutex. A thread that resets the device may take long, and is not waited
 * for; one that only tells a device its limits is. -EBUSY, -EINTR.
 */
static int lock_epoch(struct nfcm_dev *dev)
{
	if (nfcm_dev_state(dev) == NFCOMMS_STATE_READY)
		return mutex_lock_killable(&dev->epoch_mutex);
	return mutex_trylock(&dev->epoch_mutex) ? 0 : -EBUSY;
}

/* NFCOMMS_IOC_ACCESS. */
static long ioc_access(struct nfcm_dev *dev, bool writable, void __user *arg)
{
	struct nfcomms_access a;
	bool write;
	int rc = permit(dev);

	if (!rc)
		rc = nfcm_copy_in(&a, sizeof(a), NFCOMMS_ACCESS_SIZE_FIRST, arg);
	if (rc)
		return rc;
	write = a.flags & NFCOMMS_ACCESS_WRITE;
	if (a.flags & ~NFCOMMS_ACCESS_WRITE ||
	    memchr_inv(a.rsvd, 0, sizeof(a.rsvd)) || (!write && a.value) ||
	    (a.width == 4 && a.value > U32_MAX))
		return -EINVAL;
	if (write && !writable)
		return -EACCES;
	rc = nfcm_access_check(a.bar, bar_memory(dev->pdev, a.bar), a.offset,
			       a.width, write);
	if (rc)
		return rc;
	rc = lock_epoch(dev);
	if (rc)
		return rc;
	rc = make_access(dev, &a);
	mutex_unlock(&dev->epoch_mutex);
	if (!rc && copy_to_user(arg, &a, min_t(size_t, a.size, sizeof(a))))
		rc = -EFAULT;
	return rc;
}

static bool interrupted(struct nfcm_vector *v, u64 count)
{
	return READ_ONCE(v->dev->removed) ||
	       (u64)atomic64_read(&v->count) > count;
}

/*
 * Switch a vector off or on for a file. The interrupt core counts who has it off, so
 * files and the storm of nfcm_irq.c do not disturb each other. epoch_mutex is held so
 * that the vector is there.
 */
static int switch_vector(struct registers_file *r, u32 vector, bool off)
{
	lockdep_assert_held(&r->dev->epoch_mutex);
	if (r->dev->removed)
		return -ENODEV;
	if (off == !!(r->off & BIT(vector)))
		return 0;
	r->off ^= BIT(vector);
	if (off)
		disable_irq(r->dev->vector[vector].irq);
	else
		enable_irq(r->dev->vector[vector].irq);
	return 0;
}

static int ioc_switch(struct registers_file *r,
		      const struct nfcomms_interrupt *w)
{
	bool off = w->flags == NFCOMMS_INTERRUPT_OFF;
	int rc;

	if ((!off && w->flags != NFCOMMS_INTERRUPT_ON) || w->timeout_ms ||
	    w->count)
		return -EINVAL;
	rc = lock_epoch(r->dev);
	if (rc)
		return rc;
	dev_notice_ratelimited(&r->dev->dev, "%s[%d] switches vector %u %s\n",
			       current->comm, task_pid_nr(current), w->vector,
			       off ? "off" : "on");
	rc = switch_vector(r, w->vector, off);
	mutex_unlock(&r->dev->epoch_mutex);
	return rc;
}

/* NFCOMMS_IOC_INTERRUPT. */
static long ioc_interrupt(struct registers_file *r, bool writable,
			  void __user *arg)
{
	struct nfcm_dev *dev = r->dev;
	struct nfcomms_interrupt w;
	struct nfcm_vector *v;
	long left = 1;
	int rc = permit(dev);

	if (!rc)
		rc = nfcm_copy_in(&w, sizeof(w), NFCOMMS_INTERRUPT_SIZE_FIRST,
				  arg);
	if (rc)
		return rc;
	if (memchr_inv(w.rsvd, 0, sizeof(w.rsvd)) || w.vector >= dev->vectors ||
	    w.timeout_ms > NFCOMMS_INTERRUPT_MS_MAX)
		return -EINVAL;
	if (w.flags && !writable)
		return -EACCES;
	v = &dev->vector[w.vector];
	if (w.flags)
		rc = ioc_switch(r, &w);
	else
		left = wait_event_interruptible_timeout(v->wait,
							interrupted(v, w.count),
							msecs_to_jiffies(w.timeout_ms));
	if (rc)
		return rc;
	if (left < 0)
		return -EINTR;
	if (READ_ONCE(dev->removed))
		return -ENODEV;
	w.count = atomic64_read(&v->count);
	trace_nfcomms_access_irq(dev->minor, w.vector, w.count);
	if (copy_to_user(arg, &w, min_t(size_t, w.size, sizeof(w))))
		return -EFAULT;
	return left ? 0 : -ETIMEDOUT;
}

/* ---- the node ---- */

/* The node is registered: the device is there. */
static int registers_open(struct inode *inode, struct file *f)
{
	struct nfcm_dev *dev = container_of(f->private_data, struct nfcm_dev,
					    registers);
	struct registers_file *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	if (!r)
		return -ENOMEM;
	get_device(&dev->dev);
	r->dev = dev;
	f->private_data = r;
	return stream_open(inode, f);
}

static int registers_release(struct inode *inode, struct file *f)
{
	struct registers_file *r = f->private_data;
	u32 i;

	mutex_lock(&r->dev->epoch_mutex);
	for (i = 0; i < r->dev->vectors; i++)
		switch_vector(r, i, false); /* one of a removed device is gone */
	mutex_unlock(&r->dev->epoch_mutex);
	put_device(&r->dev->dev);
	kfree(r);
	return 0;
}

static long registers_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	struct registers_file *r = f->private_data;
	bool writable = f->f_mode & FMODE_WRITE;
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case NFCOMMS_IOC_ACCESS:
		return ioc_access(r->dev, writable, user);
	case NFCOMMS_IOC_INTERRUPT:
		return ioc_interrupt(r, writable, user);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations registers_fops = {
	.owner = THIS_MODULE,
	.open = registers_open,
	.release = registers_release,
	.unlocked_ioctl = registers_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* Make the node, which is root's alone. */
int nfcm_access_add(struct nfcm_dev *dev)
{
	snprintf(dev->registers_name, sizeof(dev->registers_name),
		 NFCM_NAME "_registers%d", dev->minor);
	dev->registers = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR,
		.name = dev->registers_name,
		.fops = &registers_fops,
		.parent = &dev->pdev->dev,
		.mode = 0600,
	};
	return misc_register(&dev->registers);
}

/* Nobody opens it any more. */
void nfcm_access_remove(struct nfcm_dev *dev)
{
	misc_deregister(&dev->registers);
}

// SPDX-License-Identifier: MIT
/*
 * Registers and interrupts past the driver: what an administrator reads is what
 * docs/device-spec.md says, and nobody reaches more, or at all unasked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../firmware/nfc_pci.h"
#include "../../../kmod/uapi/nfcomms_debug.h"
#include "rig.h"

enum {
	NOBODY = 65534,
	QUIET_MS = 50, /* a wait that nothing ends */
};

/* Write an attribute of the device: 0 or errno. */
static int attribute(const char *name, const char *text)
{
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/nfcomms/%s/%s",
		 strrchr(node(), '/') + 1, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : write(fd, text, strlen(text));
	n = n < 0 ? errno : 0;
	close(fd);
	return (int)n;
}

static int card = -1; /* the node of the registers */

/* Switch the device's register access: "0", as it begins, or "1". */
static void allow(const char *text)
{
	CHECK_EQ(attribute("register_access", text), 0);
	if (card < 0)
		card = open_registers(O_RDWR);
	CHECK(card >= 0);
}

static struct nfcomms_access place(uint32_t bar, uint64_t offset, uint32_t width)
{
	return (struct nfcomms_access){ .size = sizeof(struct nfcomms_access),
					.bar = bar,
					.offset = offset,
					.width = width };
}

/* Read a register of BAR 0 that can be read. */
static uint32_t peek(int fd, uint64_t offset)
{
	struct nfcomms_access a = place(0, offset, 4);

	CHECK_EQ(control(fd, NFCOMMS_IOC_ACCESS, &a), 0);
	return (uint32_t)a.value;
}

static int read_at(int fd, uint32_t bar, uint64_t offset, uint32_t width)
{
	struct nfcomms_access a = place(bar, offset, width);

	return control(fd, NFCOMMS_IOC_ACCESS, &a);
}

static int write_at(int fd, uint32_t bar, uint64_t offset, uint64_t value)
{
	struct nfcomms_access a = place(bar, offset, 4);

	a.flags = NFCOMMS_ACCESS_WRITE;
	a.value = value;
	return control(fd, NFCOMMS_IOC_ACCESS, &a);
}

/* Wait for an interrupt: 0 or errno; *count is as the structure has it. */
static int wait_for(int fd, uint32_t vector, uint32_t ms, uint64_t *count)
{
	struct nfcomms_interrupt w = { .size = sizeof(w),
				       .vector = vector,
				       .timeout_ms = ms,
				       .count = *count };
	int rc = control(fd, NFCOMMS_IOC_INTERRUPT, &w);

	*count = w.count;
	return rc;
}

CASE(it_is_off_unless_asked_for)
{
	uint64_t count = 0;

	card = open_registers(O_RDWR);
	CHECK_EQ(read_at(card, 0, NFC_REG_ID, 4), EOPNOTSUPP);
	CHECK_EQ(wait_for(card, 0, 0, &count), EOPNOTSUPP);
}

/* The clients' node has no registers, and that of the registers has no channels. */
CASE(a_node_of_its_own)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	struct stat s;
	uint64_t count = 0;
	int fd = client();

	allow("1");
	CHECK_EQ(read_at(fd, 0, NFC_REG_ID, 4), ENOTTY);
	CHECK_EQ(write_at(fd, 0, NFC_REG_DOORBELL, 1), ENOTTY);
	CHECK_EQ(wait_for(fd, 0, 0, &count), ENOTTY);
	CHECK_EQ(control(card, NFCOMMS_IOC_INFO, &info), ENOTTY);
	REQUIRE(!fstat(card, &s));
	CHECK_EQ(s.st_mode & 0777, 0600);
	CHECK_EQ(s.st_uid, 0);
	close(fd);
}

CASE(the_identification_is_that_of_the_specification)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_access magic = place(2, 0, 8);
	int fd = fresh();

	allow("1");
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(peek(card, NFC_REG_ID), NFC_MAGIC);
	CHECK_EQ(peek(card, NFC_REG_VERSION),
		 NFC_PCI_MAJOR << 16 | NFC_PCI_MINOR);
	CHECK_EQ(peek(card, NFC_REG_ABI), info.abi);
	CHECK_EQ(peek(card, NFC_REG_EPOCH), info.epoch);
	CHECK_EQ(peek(card, NFC_REG_VECTORS), info.vectors);
	CHECK_EQ(peek(card, NFC_REG_STATUS) & NFC_PCI_STATUS_STATE,
		 NFC_DEVICE_READY);
	CHECK_EQ(control(card, NFCOMMS_IOC_ACCESS, &magic), 0);
	CHECK_EQ(magic.value & 0xffffffff, NFC_MAGIC);
	CHECK_EQ(write_at(card, 0, NFC_REG_DOORBELL, 1), 0);
	CHECK_EQ(write_at(card, 0, 0x800, ~0u), 0); /* it takes none */
	CHECK_EQ(peek(card, 0x800), 0);
	close(fd);
	check_device();
}

CASE(nothing_outside_and_nothing_of_the_drivers)
{
	static const uint32_t own[] = {
		NFC_REG_CONTROL,  NFC_REG_VECTORS,	  NFC_REG_HOLDOFF,
		NFC_REG_WATCHDOG, NFC_REG_SHAPE_CHANNELS, NFC_REG_SHAPE_STATUS,
	};
	int fd = fresh();
	size_t i;

	allow("1");
	CHECK_EQ(read_at(card, 0, NFC_REGISTERS_SIZE, 4), ERANGE);
	CHECK_EQ(read_at(card, 2, 1ull << 40, 8), ERANGE);
	CHECK_EQ(read_at(card, 2, -8ull, 8), ERANGE);
	CHECK_EQ(read_at(card, 3, 0, 4), ERANGE); /* the upper half of BAR 2 */
	CHECK_EQ(read_at(card, 6, 0, 4), ERANGE);
	CHECK_EQ(read_at(card, ~0u, 0, 4), ERANGE);
	CHECK_EQ(read_at(card, 0, 2, 4), EINVAL);
	CHECK_EQ(read_at(card, 2, 4, 8), EINVAL);
	CHECK_EQ(read_at(card, 0, 0, 8), EINVAL);
	CHECK_EQ(read_at(card, 0, 0, 3), EINVAL);
	CHECK_EQ(read_at(card, 0, 0, 0), EINVAL);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		CHECK_EQ(write_at(card, 0, own[i], 0), EADDRINUSE);
	CHECK_EQ(write_at(card, 1, 0, 0), EADDRINUSE);
	CHECK_EQ(write_at(card, 2, 0, 0), EADDRINUSE);
	close(fd);
	check_device();
}

CASE(limits_of_the_device_are_in_its_registers)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	int fd = fresh();

	allow("1");
	CHECK_EQ(attribute("holdoff", "0"), 0);
	CHECK_EQ(peek(card, NFC_REG_HOLDOFF), 0);
	CHECK_EQ(attribute("holdoff", "10001"), EINVAL);
	CHECK_EQ(attribute("watchdog_timeout_ms", "60000"), 0);
	CHECK_EQ(peek(card, NFC_REG_WATCHDOG), 60000);
	CHECK_EQ(attribute("watchdog_timeout_ms", "3600001"), EINVAL);
	CHECK_EQ(attribute("max_operations", "7"), 0);
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(info.max_operations, 7);
	CHECK_EQ(attribute("max_operations", "0"), EINVAL);
	/* A boot does not forget them. */
	CHECK_EQ(reset(fd, (struct nfcomms_reset){}), 0);
	CHECK_EQ(peek(card, NFC_REG_WATCHDOG), 60000);
	CHECK_EQ(attribute("holdoff", "50"), 0);
	CHECK_EQ(peek(card, NFC_REG_HOLDOFF), 50);
	CHECK_EQ(attribute("watchdog_timeout_ms", "10000"), 0);
	CHECK_EQ(attribute("max_operations", "32768"), 0);
	close(fd);
	check_device();
}

/* Switch a vector by a descriptor of the registers. */
static int switch_vector(int fd, uint32_t vector, uint32_t flags)
{
	struct nfcomms_interrupt w = { .size = sizeof(w),
				       .flags = flags,
				       .vector = vector };

	return control(fd, NFCOMMS_IOC_INTERRUPT, &w);
}

/* The interrupts of vector 0 until now. */
static uint64_t interrupts(void)
{
	uint64_t count = ~0ull;

	CHECK_EQ(wait_for(card, 0, 0, &count), ETIMEDOUT);
	return count;
}

/* A vector that is off counts none, and the device is used without. */
CASE(vectors_are_switched_off_and_on)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	int fd = fresh(), other;
	uint64_t count;
	uint32_t i;

	allow("1");
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	for (i = 0; i < info.vectors; i++)
		CHECK_EQ(switch_vector(card, i, NFCOMMS_INTERRUPT_OFF), 0);
	CHECK_EQ(switch_vector(card, 0, NFCOMMS_INTERRUPT_OFF), 0); /* as it is */
	count = interrupts();
	/* A reset raises vector 0 at its end. */
	CHECK_EQ(reset(fd, (struct nfcomms_reset){}), 0);
	check_device();
	CHECK_EQ(interrupts(), count);
	for (i = 0; i < info.vectors; i++)
		CHECK_EQ(switch_vector(card, i, NFCOMMS_INTERRUPT_ON), 0);
	CHECK_EQ(wait_for(card, 0, PATIENCE_MS, &count), 0);

	/* Two files have it off: it is on when neither has. */
	other = open_registers(O_RDWR);
	CHECK_EQ(switch_vector(card, 0, NFCOMMS_INTERRUPT_OFF), 0);
	CHECK_EQ(switch_vector(other, 0, NFCOMMS_INTERRUPT_OFF), 0);
	CHECK_EQ(switch_vector(card, 0, NFCOMMS_INTERRUPT_ON), 0);
	count = interrupts();
	CHECK_EQ(reset(fd, (struct nfcomms_reset){}), 0);
	CHECK_EQ(interrupts(), count);
	close(other);
	CHECK_EQ(wait_for(card, 0, PATIENCE_MS, &count), 0);
	close(fd);
	check_device();
}

CASE(every_field_is_checked)
{
	struct nfcomms_access a = place(0, NFC_REG_ID, 4), b;
	struct nfcomms_interrupt w = { .size = sizeof(w) }, x;
	int fd = fresh();

	allow("1");
#define ACCESS(field, wrong, error) \
	(b = a, b.field = (wrong),  \
	 CHECK_EQ(control(card, NFCOMMS_IOC_ACCESS, &b), error))
	ACCESS(size, sizeof(a) - 1, EINVAL);
	ACCESS(size, 1 << 20, E2BIG);
	ACCESS(flags, 2, EINVAL);
	ACCESS(value, 1, EINVAL);
	ACCESS(rsvd[3], 1, EINVAL);
	CHECK_EQ(write_at(card, 0, NFC_REG_DOORBELL, 1ull << 32), EINVAL);
	CHECK_EQ(control(card, NFCOMMS_IOC_ACCESS, NULL), EFAULT);
#define INTERRUPT(field, wrong, error) \
	(x = w, x.field = (wrong),     \
	 CHECK_EQ(control(card, NFCOMMS_IOC_INTERRUPT, &x), error))
	INTERRUPT(size, sizeof(w) - 1, EINVAL);
	INTERRUPT(flags, 3, EINVAL);
	INTERRUPT(flags, 4, EINVAL);
	INTERRUPT(vector, 1000, EINVAL);
	INTERRUPT(timeout_ms, NFCOMMS_INTERRUPT_MS_MAX + 1, EINVAL);
	INTERRUPT(rsvd[0], 1, EINVAL);
	CHECK_EQ(control(card, NFCOMMS_IOC_INTERRUPT, NULL), EFAULT);
	w.flags = NFCOMMS_INTERRUPT_ON;
	INTERRUPT(timeout_ms, 1, EINVAL);
	INTERRUPT(count, 1, EINVAL);
	close(fd);
}

/* As nobody, with a descriptor that root opened. */
static int try_as_nobody(void *argument)
{
	uint64_t count = 0;

	(void)argument;
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 1;
	return (open_registers(O_RDWR) < 0 && errno == EACCES ? 0 : 16) |
	       (read_at(card, 0, NFC_REG_ID, 4) == EPERM ? 0 : 2) |
	       (write_at(card, 0, NFC_REG_DOORBELL, 1) == EPERM ? 0 : 4) |
	       (wait_for(card, 0, 0, &count) == EPERM ? 0 : 8) |
	       (switch_vector(card, 0, NFCOMMS_INTERRUPT_OFF) == EPERM ? 0 : 32);
}

CASE(it_takes_an_administrator)
{
	int fd = fresh(), reads;

	allow("1");
	CHECK_EQ(wait_child(child(try_as_nobody, NULL)), 0);
	reads = open_registers(O_RDONLY);
	CHECK_EQ(peek(reads, NFC_REG_ID), NFC_MAGIC);
	CHECK_EQ(write_at(reads, 0, NFC_REG_DOORBELL, 1), EACCES);
	CHECK_EQ(switch_vector(reads, 0, NFCOMMS_INTERRUPT_OFF), EACCES);
	close(reads);
	close(fd);
}

CASE(an_interrupt_is_waited_for)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	uint64_t before = ~0ull, count;
	int fd = fresh();

	allow("1");
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(wait_for(card, 0, 0, &before), ETIMEDOUT);
	count = ~0ull;
	CHECK_EQ(wait_for(card, 0, QUIET_MS, &count), ETIMEDOUT);
	CHECK(count != ~0ull && count >= before);
	/* A reset raises vector 0 at its end. */
	before = count;
	CHECK_EQ(reset(fd, (struct nfcomms_reset){}), 0);
	CHECK_EQ(wait_for(card, 0, PATIENCE_MS, &count), 0);
	CHECK(count > before);
	close(fd);
	check_device();
}

static void *reset_later(void *argument)
{
	usleep(1000 * QUIET_MS);
	reset(*(int *)argument, (struct nfcomms_reset){});
	return NULL;
}

static _Atomic bool over;

static void *change_limits(void *unused)
{
	while (!over)
		CHECK_EQ(attribute("holdoff", "50"), 0);
	return unused;
}

/* The driver tells the device its limits at any time: an access waits for that. */
CASE(beside_limits_that_change)
{
	int fd = fresh(), i;
	pthread_t other;

	allow("1");
	over = false;
	REQUIRE(!pthread_create(&other, NULL, change_limits, NULL));
	for (i = 0; i < 300 && !test_failures(); i++)
		CHECK_EQ(peek(card, NFC_REG_ID), NFC_MAGIC);
	over = true;
	pthread_join(other, NULL);
	close(fd);
}

CASE(who_waits_is_woken)
{
	uint64_t count = ~0ull;
	pthread_t other;
	int fd = fresh();

	allow("1");
	CHECK_EQ(wait_for(card, 0, 0, &count), ETIMEDOUT);
	REQUIRE(!pthread_create(&other, NULL, reset_later, &fd));
	CHECK_EQ(wait_for(card, 0, PATIENCE_MS, &count), 0);
	pthread_join(other, NULL);
	close(fd);
	allow("0");
	CHECK_EQ(read_at(card, 0, NFC_REG_ID, 4), EOPNOTSUPP);
}

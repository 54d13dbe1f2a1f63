// SPDX-License-Identifier: MIT
/*
 * Memory of another device as a region: dma-bufs of udmabuf, which makes them of a
 * memfd. Their bytes move without a pin, whatever the caller has at the addresses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "region.h"

enum {
	PAGE = NFC_PAGE_SIZE,
	SIZE = BUFFER_SIZE,
	IMPORTS = 16, /* more than the DMA debugging lets a page be mapped */
	DMA_BUF = NFCOMMS_REGION_DMA_BUF,
};

/* The device reads and writes the buffer, from any byte of it on. */
CASE(source_and_sink)
{
	static const uint32_t at[] = { 0, 1, 4095, 4096, 70000 };
	static const uint32_t n[] = { SIZE, 1, 4098, 100000, SIZE / 2 };
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	struct buffer b = buffer_new();
	uint8_t *name = name_for(SIZE), *q = pages(SIZE, 2);
	uint64_t before;

	CHECK_EQ(import(fd, name, SIZE, b.fd, 0, 0), 0);
	CHECK_EQ(registers(fd, q, SIZE), 0);
	close(b.fd); /* not needed any more */
	b.fd = -1;
	before = pins(fd);
	for (int k = 0; k < 5; k++) {
		for (uint32_t i = 0; i < n[k]; i++)
			b.p[at[k] + i] = pattern(k, i);
		CHECK_EQ(send_at(fd, loop, name + at[k], n[k]).status, NFC_OK);
		CHECK_EQ(receive_at(fd, loop, q, n[k]).status, NFC_OK);
		CHECK(!memcmp(q, b.p + at[k], n[k]));
		memset(b.p, 0xee, SIZE);
		CHECK_EQ(send_at(fd, loop, q, n[k]).status, NFC_OK);
		CHECK_EQ(receive_at(fd, loop, name + at[k], n[k]).status,
			 NFC_OK);
		CHECK(!memcmp(q, b.p + at[k], n[k]));
		CHECK(!at[k] || b.p[at[k] - 1] == 0xee);
		CHECK(at[k] + n[k] == SIZE || b.p[at[k] + n[k]] == 0xee);
	}
	CHECK_EQ(pins(fd), before);
	CHECK_EQ(unregister(fd, name), 0);
	CHECK_EQ(send_at(fd, loop, name, PAGE).error, EFAULT);
	close(fd);
	buffer_free(&b);
	free_pages(name, SIZE);
	free_pages(q, SIZE);
	check_pins();
}

CASE(a_part_of_a_buffer)
{
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	struct buffer b = buffer_new();
	uint8_t *name = name_for(3 * PAGE), *q = pages(3 * PAGE, 2);

	for (int i = 0; i < SIZE; i++)
		b.p[i] = pattern(1, i);
	CHECK_EQ(import(fd, name, 3 * PAGE, b.fd, 7 * PAGE, 0), 0);
	CHECK_EQ(send_at(fd, loop, name, 3 * PAGE).status, NFC_OK);
	CHECK_EQ(receive_at(fd, loop, q, 3 * PAGE).status, NFC_OK);
	CHECK(!memcmp(q, b.p + 7 * PAGE, 3 * PAGE));
	close(fd);
	buffer_free(&b);
	free_pages(name, 3 * PAGE);
	free_pages(q, 3 * PAGE);
	check_pins();
}

CASE(what_cannot_be_imported)
{
	int fd = fresh(), way[2];
	struct buffer b = buffer_new();
	uint8_t *name = name_for(2 * SIZE);

	REQUIRE(!pipe(way));
	CHECK_EQ(import(fd, name, SIZE, way[0], 0, 0), EINVAL);
	CHECK_EQ(import(fd, name, SIZE, b.memory, 0, 0), EINVAL);
	CHECK_EQ(import(fd, name, SIZE, fd, 0, 0), EINVAL);
	CHECK_EQ(import(fd, name, SIZE, 9999, 0, 0), EBADF);
	CHECK_EQ(import(fd, name, SIZE + 1, b.fd, 0, 0), EINVAL);
	CHECK_EQ(import(fd, name, SIZE, b.fd, PAGE, 0), EINVAL);
	CHECK_EQ(import(fd, name, PAGE, b.fd, 1ull << 63, 0), EINVAL);
	CHECK_EQ(import(fd, name, PAGE, b.fd, -PAGE, 0), EINVAL);
	CHECK_EQ(import(fd, name, SIZE, b.fd, 0, 0), 0);
	CHECK_EQ(import(fd, name + SIZE, SIZE, b.fd, 0, 0), 0); /* once more */
	CHECK_EQ(regions(fd), 2);
	buffer_free(&b);
	CHECK_EQ(unregister(fd, name), 0);
	CHECK_EQ(import(fd, name, SIZE, b.fd, 0, 0), EBADF); /* it vanished */
	close(fd);
	close(way[0]);
	close(way[1]);
	free_pages(name, 2 * SIZE);
	check_pins();
}

/* It is not given back under a transfer, though nobody has it open any more. */
CASE(its_descriptor_is_closed)
{
	int fd = fresh();
	uint32_t ch = program(fd, "hold");
	struct buffer b = buffer_new();
	uint8_t *name = name_for(SIZE);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, ch, name, SIZE);
	struct nfcomms_completion c = { .status = 0 };

	CHECK_EQ(import(fd, name, SIZE, b.fd, 0, 0), 0);
	by_handle(fd, &op);
	CHECK_EQ(submit(fd, &op, 1), 1);
	CHECK_EQ(unregister(fd, name), EBUSY);
	free_pages(name, SIZE);
	buffer_free(&b); /* the device has it yet */
	CHECK_EQ(regions(fd), 1);
	CHECK_EQ(cancel(fd, taken_id()), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
	CHECK_EQ(unregister(fd, name), 0);
	close(fd);
	check_pins();
	check_device();
}

/* How many attachments all dma-bufs have. */
static int attached(void)
{
	FILE *f = fopen("/sys/kernel/debug/dma_buf/bufinfo", "re");
	char line[256];
	int sum = 0, n;

	if (!CHECK(f))
		return -1;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, " devices attached") &&
		    sscanf(line, "Total %d", &n) == 1)
			sum += n;
	fclose(f);
	return sum;
}

/* A file's regions of it end behind what uses them. */
static void await_attached(int want)
{
	uint64_t start = now_ns();

	while (attached() != want)
		if (!CHECK(now_ns() - start < PATIENCE_MS * 1000000ull))
			return;
}

/* One attachment and one mapping serve all regions of a device, of any file. */
CASE(one_attachment_for_all_regions)
{
	int fd = fresh(), other = client();
	uint32_t loop = program(fd, "loopback"), ch = program(other, "hold");
	struct buffer b = buffer_new();
	uint8_t *name = name_for(IMPORTS * SIZE), *q = pages(SIZE, 2);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, ch, name, SIZE);
	struct nfcomms_completion c = { .status = 0 };

	for (int i = 0; i < IMPORTS; i++)
		CHECK_EQ(import(i % 2 ? fd : other, name + i * SIZE, SIZE, b.fd,
				0, 0),
			 0);
	CHECK_EQ(attached(), 1);
	for (int i = 1; i < IMPORTS; i += 2) {
		b.p[i] = (uint8_t)(100 + i);
		CHECK_EQ(send_at(fd, loop, name + i * SIZE, SIZE).status,
			 NFC_OK);
		CHECK_EQ(receive_at(fd, loop, q, SIZE).status, NFC_OK);
		CHECK(!memcmp(q, b.p, SIZE));
	}
	CHECK_EQ(import(fd, name, SIZE, b.fd, 0, NFCOMMS_REGION_READ_ONLY), 0);
	CHECK_EQ(attached(), 2); /* the device may not write by this one */
	CHECK_EQ(receive_at(fd, loop, name, PAGE).error, EACCES);
	by_handle(other, &op);
	CHECK_EQ(submit(other, &op, 1), 1);
	for (int i = 2; i < IMPORTS; i += 2)
		CHECK_EQ(unregister(other, name + i * SIZE), 0);
	close(fd);
	await_attached(1); /* for the transfer */
	CHECK_EQ(cancel(other, taken_id()), 0);
	CHECK(reap(other, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
	CHECK_EQ(unregister(other, name), 0);
	CHECK_EQ(attached(), 0);
	close(other);
	buffer_free(&b);
	free_pages(name, IMPORTS * SIZE);
	free_pages(q, SIZE);
	check_pins();
	check_device();
}

CASE(its_device_went)
{
	char device[PATH_MAX];
	int fd = fresh();
	struct buffer b = buffer_new();
	uint8_t *name = name_for(SIZE);

	CHECK_EQ(import(fd, name, SIZE, b.fd, 0, NFCOMMS_REGION_READ_ONLY), 0);
	find_device(device);
	unbind(device);
	CHECK_EQ(regions(fd), 0);
	bind_to(device);
	await_node();
	close(fd);
	buffer_free(&b);
	free_pages(name, SIZE);
	check_device();
	check_pins();
}

/* SPDX-License-Identifier: MIT */
/*
 * The hosts of a hosted device: the memory each gets, and how islands sleep until
 * one of them rings. A device has one host, which is this process or the one
 * behind its bus. Or it is shared: then its hosts are other processes that are
 * attached and detached, each with a bus of its own.
 */
#ifndef PORT_SEAT_H
#define PORT_SEAT_H

#include "../nfc_port.h"

struct epoch;
struct nfc_bus;
struct nfc_hosted_far;
struct nfc_hosted_joints;

/*
 * The port's state of a host. Owned by the thread that attaches and detaches,
 * except `area`.
 */
struct seat {
	struct nfc_seat core; /* its state stays until the device's end */
	_Atomic(struct nfc_area *) area; /* islands sleep on its words; NULL: none */
	bool used; /* by a host of a shared device */
	struct nfc_bus *bus; /* of a host of a shared device that is near */
	int doorbell; /* a socket to it, a duplicate; -1: none */
	const struct nfc_hosted_far *far; /* of one that is far */
	_Atomic(const struct nfc_hosted_joints *) joints; /* NULL: there are none */
	void *far_area; /* mapped once, until the device's end */
	_Atomic bool fenced; /* its transfers end without a word */
};

/* Memory for host 0 beside an area. 0 or enum nfc_status. */
int port_seat_boot(struct epoch *epoch, void *area, uint32_t number);
void port_seats_free(struct epoch *epoch);

/* Sleep until a host rings the island or another thread wakes it, or until then. */
void port_seats_sleep(struct epoch *epoch, uint32_t island, uint64_t until_ns);
void port_seats_wake(struct epoch *epoch, uint32_t island);
/* Ring a host of a shared device. It never blocks, whatever the host did. */
void port_seat_ring(struct epoch *epoch, uint32_t host);

#endif /* PORT_SEAT_H */

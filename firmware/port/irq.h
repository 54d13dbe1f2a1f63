/* SPDX-License-Identifier: MIT */
/*
 * Interrupt vectors: each is an eventfd from the emulator of the bus. An
 * interrupt that cannot be sent now stays pending until the vector has its
 * eventfd, the device may master the bus, and the hold-off of the last one is
 * over. Any thread may make every call.
 */
#ifndef PORT_IRQ_H
#define PORT_IRQ_H

#include <stdbool.h>
#include <stdint.h>

struct nfc_irq;

struct nfc_irq_stats {
	uint64_t sent; /* eventfds written */
	uint64_t held; /* interrupts that waited or joined one that waits */
	uint64_t pending; /* mask of vectors */
};

/* NULL: out of memory or threads. */
struct nfc_irq *nfc_irq_new(uint32_t vectors);
void nfc_irq_free(struct nfc_irq *q);
/* Give a vector its eventfd (duplicated), or -1 to take it away; 0 or -errno. */
int nfc_irq_assign(struct nfc_irq *q, uint32_t vector, int fd);
/* The host uses this many vectors, 1 at least. */
void nfc_irq_use(struct nfc_irq *q, uint32_t vectors);
/* At least so many microseconds between two interrupts of this vector. */
void nfc_irq_holdoff(struct nfc_irq *q, uint32_t vector, uint32_t us);
/* May interrupts be sent? At first not. */
void nfc_irq_enable(struct nfc_irq *q, bool on);
/* Forget what is pending. */
void nfc_irq_clear(struct nfc_irq *q);
void nfc_irq_raise(struct nfc_irq *q, uint32_t vector);
/* Interrupt now, whatever the hold-off is. */
void nfc_irq_fire(struct nfc_irq *q, uint32_t vector);
/* The vector on which an island interrupts. */
uint32_t nfc_irq_vector(struct nfc_irq *q, uint32_t island);
/* An island has something for the host. */
void nfc_irq_ring(struct nfc_irq *q, uint32_t island);
void nfc_irq_stats(struct nfc_irq *q, struct nfc_irq_stats *s);

#endif /* PORT_IRQ_H */

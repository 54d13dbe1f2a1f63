/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The device as a PCI function: ids, BARs and registers. The mailbox area of
 * nfc_abi.h is at the start of BAR 2; docs/device-spec.md is the manual.
 *
 * Registers are 32 bits wide, little-endian, accessed whole. A read of all ones
 * from ID means that the device was removed.
 */
#ifndef NFC_PCI_H
#define NFC_PCI_H

#include "nfc_abi.h"

/*
 * Ids of the emulated device, in the space that emulators use without an
 * assignment by PCI-SIG. A card of yours has its own: change them here.
 */
enum nfc_pci_id {
	NFC_PCI_VENDOR = 0x1234,
	NFC_PCI_DEVICE = 0x4e46,
	NFC_PCI_REVISION = 1,
	NFC_PCI_CLASS = 0x120000, /* processing accelerator */
};

enum nfc_pci_bar {
	NFC_BAR_REGISTERS = 0, /* 32-bit, 4 KiB */
	NFC_BAR_MSIX = 1, /* 32-bit, 4 KiB: table at 0, pending bits at 0x800 */
	NFC_BAR_MAILBOXES = 2, /* 64-bit, prefetchable: the mailbox area */
	NFC_REGISTERS_SIZE = 4096,
	NFC_MSIX_SIZE = 4096,
	NFC_MSIX_PBA = 0x800,
	NFC_VECTORS_MAX = 17, /* vector 0 and one per island */
};

/* Offsets in BAR 0. (R) the host reads, (W) writes. */
enum nfc_register {
	NFC_REG_ID = 0x000, /* (R) NFC_MAGIC */
	NFC_REG_VERSION = 0x004, /* (R) register interface, major << 16 | minor */
	NFC_REG_ABI = 0x008, /* (R) nfc_abi.h, major << 16 | minor */
	NFC_REG_CAPABILITIES = 0x00c, /* (R) enum nfc_pci_capability */
	NFC_REG_STATUS = 0x010, /* (R) enum nfc_pci_status */
	NFC_REG_CONTROL = 0x014, /* (RW) enum nfc_pci_control */
	NFC_REG_EPOCH = 0x018, /* (R) present epoch; 0 before the first */
	NFC_REG_VECTORS = 0x01c, /* (RW) interrupt vectors the host uses, 1..17 */
	NFC_REG_HOLDOFF = 0x020, /* (RW) least us between interrupts of a vector, 0..10000 */
	NFC_REG_HOST_BEAT = 0x024, /* (W) the host is alive; see the spec for the watchdog */
	NFC_REG_WATCHDOG = 0x028, /* (RW) ms without a host beat before DMA is fenced; 0: never */
	NFC_REG_DMA_FAULTS = 0x02c, /* (R) accesses outside what was mapped */
	NFC_REG_MESSAGES = 0x030, /* (R) interrupts sent, all vectors */
	/* Shape of the next epoch: read when RESET is written. 0: the default. */
	NFC_REG_SHAPE_CHANNELS = 0x040, /* (RW) */
	NFC_REG_SHAPE_MAILBOXES = 0x044, /* (RW) */
	NFC_REG_SHAPE_ISLANDS = 0x048, /* (RW) */
	NFC_REG_SHAPE_SLOTS = 0x04c, /* (RW) per ring, a power of two */
	NFC_REG_SHAPE_WINDOW = 0x050, /* (RW) */
	NFC_REG_SHAPE_TIMEOUT = 0x054, /* (RW) milliseconds a target may stay unready */
	NFC_REG_SHAPE_EMEM = 0x058, /* (RW) external memory in units of 4 KiB */
	NFC_REG_SHAPE_STATUS = 0x05c, /* (R) enum nfc_status of the last RESET */
	NFC_REG_DOORBELL = 0x100, /* (W) + 4 * island: read the rings */
	NFC_REG_VECTOR_HOLDOFF =
		0x180, /* (RW) + 4 * vector: HOLDOFF of one; HOLDOFF sets all */
};

enum nfc_pci_version {
	NFC_PCI_MAJOR = 1,
	NFC_PCI_MINOR = 0,
};

enum nfc_pci_capability {
	NFC_PCI_CAP_SHAPE = 1 << 0, /* the SHAPE registers work */
	NFC_PCI_CAP_HOLDOFF = 1 << 1, /* HOLDOFF works */
	NFC_PCI_CAP_WATCHDOG = 1 << 2, /* WATCHDOG works */
	NFC_PCI_CAP_VECTOR_HOLDOFF = 1 << 3, /* VECTOR_HOLDOFF works */
};

/* STATUS: a level, and flags. */
enum nfc_pci_status {
	NFC_PCI_STATUS_STATE = 0xff, /* mask: enum nfc_device_state */
	NFC_PCI_STATUS_DMA = 1 << 8, /* the DMA engines may run */
	NFC_PCI_STATUS_BUSY = 1 << 9, /* a RESET or QUIESCE is under way */
	NFC_PCI_STATUS_WATCHDOG =
		1 << 10, /* no host heartbeat arrived in time: DMA is fenced */
};

/* CONTROL: write one of these; STATUS.BUSY clears when it is done. */
enum nfc_pci_control {
	NFC_PCI_CONTROL_RESET =
		1, /* fence DMA, end this epoch, boot the next with the SHAPE */
	NFC_PCI_CONTROL_QUIESCE = 2, /* fence DMA for good: nothing moves until RESET */
};

#endif /* NFC_PCI_H */

// Package card is a back end that is not part of NFComms: what a vendor writes for a card. Here the
// card is the firmware on threads of this process, over the hosted port. A real one maps the
// mailbox area of a PCI BAR, pins pages in Map, and opens an eventfd of its driver as the doorbell.
package card

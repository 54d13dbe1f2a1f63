// Package arena deals out memory of this process that a device process, or a device behind a socket,
// reaches where it lies: memfds that keep their size.
package arena

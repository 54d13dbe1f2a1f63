// Package vhostclient is the client side of vhost-user as far as tests need it:
// the kernel of a guest, with memory and two queues, but without its courtesy.
package vhostclient

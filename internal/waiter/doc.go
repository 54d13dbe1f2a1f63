// Package waiter queues who waits for a half of a channel to be ready, for the
// back ends' Arm and Disarm.
package waiter

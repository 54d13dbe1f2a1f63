// Package soak moves data with checksums between processes that are killed and started again, and holds
// the books of both sides.
package soak

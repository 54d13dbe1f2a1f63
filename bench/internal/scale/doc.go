// Package scale measures a live channel beside many that are open, or blocked.
package scale

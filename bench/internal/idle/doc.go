// Package idle measures clients of a shared device that do nothing.
package idle

// Package crowd measures many callers at once, on a quiet machine and a busy one.
package crowd

// Package klog finds the reports of a kernel about itself in its log: warnings,
// bugs, and what lockdep, KASAN, UBSAN, kmemleak, the DMA debugging and the
// watchdogs say.
package klog

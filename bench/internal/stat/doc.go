// Package stat computes what samples come to: means, percentiles, medians of rounds, Hockney's model.
package stat

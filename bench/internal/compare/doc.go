// Package compare has contenders of one kind of operation take turns: calls of NFComms, and what one would
// take in place of them. Each contender is here once, for all subjects.
package compare

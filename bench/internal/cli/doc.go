// Package cli is what the commands have in common: flags, exit codes, the header of a report, goals, a
// progress bar, and the machine.
package cli

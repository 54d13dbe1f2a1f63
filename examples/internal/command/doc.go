// Package command is what the example programs have in common as commands: exit
// codes, one line for an error, an end by Ctrl-C, a progress bar.
package command

// Package command is what examples and applications have in common as commands: exit
// codes, one line for an error, an end by Ctrl-C, a progress bar.
package command

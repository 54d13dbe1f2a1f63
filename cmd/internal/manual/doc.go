// Package manual writes the manual pages of commands.
package manual

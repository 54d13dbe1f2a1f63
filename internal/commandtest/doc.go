// Package commandtest runs the command lines of examples and applications in their tests.
package commandtest

// Package commandtest runs the examples' command lines in their tests.
package commandtest

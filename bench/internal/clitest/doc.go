// Package clitest runs command lines in tests.
package clitest

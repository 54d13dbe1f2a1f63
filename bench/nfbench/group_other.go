//go:build !linux

package main

import "github.com/spf13/cobra"

// addGroup adds nothing: rings, and so member processes, are for Linux.
func addGroup(*cobra.Command, *common) {}

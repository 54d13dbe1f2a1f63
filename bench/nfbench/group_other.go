//go:build !linux

package main

import "github.com/spf13/cobra"

// addGroups adds nothing: rings, and so member processes, are for Linux.
func addGroups(*cobra.Command, *common) {}

//go:build !linux

package main

import "github.com/spf13/cobra"

// addSoak adds nothing: package ring is for Linux.
func addSoak(*cobra.Command, *common) {}

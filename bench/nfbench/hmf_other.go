//go:build !linux

package main

import "github.com/spf13/cobra"

// addHMF adds nothing: package ring is for Linux.
func addHMF(*cobra.Command, *common) {}

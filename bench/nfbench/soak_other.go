//go:build !linux

package main

import "github.com/spf13/cobra"

// addSoak adds nothing: package ring is for Linux.
func addSoak(*cobra.Command, *common) {}

// addIdle adds nothing: devices that processes share are for Linux.
func addIdle(*cobra.Command, *common) {}

//go:build !linux

package main

import "context"

func newMPIEcho(context.Context) (*contender, string) { return nil, "for Linux alone" }

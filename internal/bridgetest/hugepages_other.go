//go:build !linux

package bridgetest

func preferHugePages([]byte) {}

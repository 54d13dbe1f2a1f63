//go:build !linux

package kdev

import "github.com/nfcomms/nfcomms/bridge"

// window has no dma-bufs here.
func window(int) ([]byte, func([]byte), error) { return nil, nil, bridge.ErrNotSupported }

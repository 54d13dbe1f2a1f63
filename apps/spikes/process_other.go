//go:build !linux

package main

import (
	"context"
	"errors"
	"io"

	"github.com/nfcomms/nfcomms/pkg/group"
)

func rings(string) group.Transport { return nil }

func (s *settings) processes(context.Context, []string, io.Writer, io.Writer) error {
	return inputError{errors.New("--transport shm: rings are there on Linux only")}
}

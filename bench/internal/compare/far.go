package compare

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// farMemory is memory of an emulated processor: a file. This process copies it by calls, as it would
// that of a GPU; a device reaches it in place, by its mapping, as peer to peer.
type farMemory struct {
	file   *os.File
	mapped []byte
	bounce []byte // of this process
}

func newFarMemory(size int) (*farMemory, error) {
	file, err := os.CreateTemp("", "nfbench-far")
	if err != nil {
		return nil, err
	}
	f := &farMemory{file: file, bounce: Buffer(size)}
	if err = os.Remove(file.Name()); err == nil {
		err = file.Truncate(int64(size))
	}
	if err == nil {
		f.mapped, err = syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	copy(f.mapped, Buffer(size))
	return f, nil
}

func (f *farMemory) close() error { return errors.Join(syscall.Munmap(f.mapped), f.file.Close()) }

// contender gives that memory to the sink: in place, or first copied to the buffer of this process.
func (f *farMemory) contender(ctx context.Context, dev *nfcomms.Device, staged bool) (*Contender, error) {
	c := &Contender{Name: NameFarDirect, Does: doesAck, Size: len(f.mapped), Batch: 1}
	from := f.mapped
	if staged {
		c.Name, from = NameFarStaged, f.bounce
	}
	return onProgram(ctx, dev, "sink", c, func(ctx context.Context, ch *nfcomms.Channel, n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if staged {
				if _, err := f.file.ReadAt(f.bounce, 0); err != nil {
					return 0, err
				}
			}
			if err := ch.SendInd(ctx, from, len(from)); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	})
}

// NewFar gives transfers from memory of an emulated processor, in place or staged.
func NewFar(ctx context.Context, dev *nfcomms.Device, size int, staged bool) (*Contender, error) {
	f, err := newFarMemory(size)
	if err != nil {
		return nil, err
	}
	c, err := f.contender(ctx, dev, staged)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	end := c.Close
	c.Close = func() error { return errors.Join(end(), f.close()) }
	return c, nil
}

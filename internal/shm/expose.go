//go:build linux

package shm

import (
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/region"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

const _ = uint(shmwire.Exposures - region.Exposures) // the device process keeps all that count as exposed

// Expose has the device process keep memory for hosts that know the key.
func (p *port) Expose(mem []byte) (key uint64, err error) {
	fd, err := p.Reveal(mem)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	ask := shmwire.Message{Kind: shmwire.Expose, Address: p.Bus(mem), Size: uint64(len(mem))}
	answer, _, err := p.linked().request(&ask, 0, fd)
	return answer.Address, err
}

// Fetch maps memory that another host exposes.
func (p *port) Fetch(key uint64) ([]byte, error) {
	answer, files, err := p.linked().request(&shmwire.Message{Kind: shmwire.Fetch, Address: key}, 1)
	if err != nil {
		return nil, err
	}
	defer unix.Close(files[0])
	if err := shmwire.CheckMemory(files[0], answer.Size); err != nil {
		return nil, err
	}
	return p.Adopt(files[0])
}

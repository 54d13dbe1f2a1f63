package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// uploadPause is how long an upload may stand still.
const uploadPause = 30 * time.Second

type loadStream = grpc.BidiStreamingServer[nfcommsv1.LoadProgramRequest, nfcommsv1.LoadProgramResponse]

// LoadProgram takes a program image and gives it to the device. A device takes
// one upload at a time, others get ErrBusy.
func (v deviceService) LoadProgram(stream loadStream) error {
	in := v.receive(stream)
	first, err := in()
	if err != nil {
		return unfinished(err)
	}
	d, err := v.loadTo(first.GetHeader())
	if err != nil {
		return err
	}
	select {
	case d.load <- struct{}{}:
		defer func() { <-d.load }()
	default:
		return fmt.Errorf("%q takes another image: %w", d.name(), nfcomms.ErrBusy)
	}
	dev, err := d.begin()
	if err != nil {
		return err
	}
	defer d.finish()
	at, err := siteOf(stream.Context(), dev, "header.node", first.GetHeader().GetNode())
	if err != nil {
		return err
	}
	image, err := upload(stream, in, first.GetHeader().GetSizeBytes())
	if err != nil {
		return err
	}
	program, err := at.dev.Load(stream.Context(), image)
	if err != nil {
		return err
	}
	name := ProgramName(d.id, program)
	d.eventBy(v.s.callerOf(stream.Context()), nfcommsv1.Event_TYPE_PROGRAM_LOADED, name, fmt.Sprintf("loaded: %d bytes", len(image)), nil)
	return stream.Send(&nfcommsv1.LoadProgramResponse{
		ReceivedBytes: uint64(len(image)), Program: &nfcommsv1.Program{Name: name},
	})
}

// loadTo checks the header of an upload and finds its device.
func (v deviceService) loadTo(h *nfcommsv1.LoadProgramHeader) (*device, error) {
	size, most := h.GetSizeBytes(), uint64(v.s.opt.MaxImage)
	switch {
	case h == nil:
		return nil, invalid("header", "the first request has none")
	case size == 0:
		return nil, invalid("header.size_bytes", "an image has at least 1 byte")
	case size > most:
		return nil, &FieldError{"header.size_bytes", fmt.Errorf("image of %d bytes, at most %d: %w", size, most, nfcomms.ErrTooLarge)}
	}
	return v.s.named("header.parent", h.GetParent())
}

// receive returns a function that gives the next request of an upload, or an
// error if the client pauses for too long or the server shuts down.
func (v deviceService) receive(stream loadStream) func() (*nfcommsv1.LoadProgramRequest, error) {
	type part struct {
		req *nfcommsv1.LoadProgramRequest
		err error
	}
	parts := make(chan part)
	ctx := stream.Context() // ends with the method
	receiving := v.s.background.spawn(func() {
		for {
			req, err := stream.Recv()
			select {
			case parts <- part{req, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	return func() (*nfcommsv1.LoadProgramRequest, error) {
		if !receiving {
			return nil, ErrShutdown
		}
		pause := time.NewTimer(uploadPause)
		defer pause.Stop()
		select {
		case p := <-parts:
			return p.req, p.err
		case <-pause.C:
			return nil, fmt.Errorf("nothing came for %v: %w", uploadPause, context.DeadlineExceeded)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-v.s.done:
			return nil, ErrShutdown
		}
	}
}

// upload takes an image of size bytes in chunks. Its memory grows with what
// arrives, not with what was announced.
func upload(stream loadStream, in func() (*nfcommsv1.LoadProgramRequest, error), size uint64) ([]byte, error) {
	var image []byte
	for {
		req, err := in()
		switch {
		case errors.Is(err, io.EOF) && uint64(len(image)) == size:
			return image, nil
		case errors.Is(err, io.EOF):
			return nil, invalid("chunk", "the image ends after %d of %d bytes", len(image), size)
		case err != nil:
			return nil, err
		case len(req.GetChunk()) == 0:
			return nil, invalid("chunk", "a request after the header has no chunk, or an empty one")
		case uint64(len(image)+len(req.GetChunk())) > size:
			return nil, invalid("chunk", "the image is longer than the %d bytes of its header", size)
		}
		image = append(image, req.GetChunk()...)
		if err := stream.Send(&nfcommsv1.LoadProgramResponse{ReceivedBytes: uint64(len(image))}); err != nil {
			return nil, err
		}
	}
}

// unfinished is the error of a stream that ended before its header.
func unfinished(err error) error {
	if errors.Is(err, io.EOF) {
		return invalid("header", "the upload ended before it began")
	}
	return err
}

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// pages yields the items of all pages; get returns one page and the next token.
// An error is the last thing it yields.
func pages[T any](get func(token string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token := ""; ; {
			items, next, err := get(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if token = next; token == "" {
				return
			}
		}
	}
}

// ListDevices yields all devices in the order of their names, page by page. An
// error ends it.
func (c *Client) ListDevices(ctx context.Context) iter.Seq2[*nfcommsv1.Device, error] {
	return pages(func(token string) ([]*nfcommsv1.Device, string, error) {
		r, err := c.Devices.ListDevices(ctx, &nfcommsv1.ListDevicesRequest{PageSize: pageMost, PageToken: token})
		return r.GetDevices(), r.GetNextPageToken(), err
	})
}

// ListChannels yields all channels of a device, or of AllDevices, as ListDevices.
func (c *Client) ListChannels(ctx context.Context, parent string) iter.Seq2[*nfcommsv1.Channel, error] {
	return pages(func(token string) ([]*nfcommsv1.Channel, string, error) {
		r, err := c.Channels.ListChannels(ctx, &nfcommsv1.ListChannelsRequest{Parent: parent, PageSize: pageMost, PageToken: token})
		return r.GetChannels(), r.GetNextPageToken(), err
	})
}

// ListPrograms yields all programs of a device, or of the node x.y.z of its fabric if node is not
// empty, as ListDevices.
func (c *Client) ListPrograms(ctx context.Context, parent, node string) iter.Seq2[*nfcommsv1.Program, error] {
	return pages(func(token string) ([]*nfcommsv1.Program, string, error) {
		r, err := c.Devices.ListPrograms(ctx, &nfcommsv1.ListProgramsRequest{Parent: parent, Node: node, PageSize: pageMost, PageToken: token})
		return r.GetPrograms(), r.GetNextPageToken(), err
	})
}

// ListProcesses yields all processes that clients of the server started on a device, or on
// AllDevices, as ListDevices.
func (c *Client) ListProcesses(ctx context.Context, parent string) iter.Seq2[*nfcommsv1.Process, error] {
	return pages(func(token string) ([]*nfcommsv1.Process, string, error) {
		r, err := c.Devices.ListProcesses(ctx, &nfcommsv1.ListProcessesRequest{Parent: parent, PageSize: pageMost, PageToken: token})
		return r.GetProcesses(), r.GetNextPageToken(), err
	})
}

// ListEvents yields the kept events of a device, or of AllDevices, oldest first,
// as ListDevices.
func (c *Client) ListEvents(ctx context.Context, parent string) iter.Seq2[*nfcommsv1.Event, error] {
	return pages(func(token string) ([]*nfcommsv1.Event, string, error) {
		r, err := c.Events.ListEvents(ctx, &nfcommsv1.ListEventsRequest{Parent: parent, PageSize: pageMost, PageToken: token})
		return r.GetEvents(), r.GetNextPageToken(), err
	})
}

// uploadChunk is the size of the pieces of an image, in bytes.
const uploadChunk = 64 << 10

// LoadProgram reads an image of header.SizeBytes, which adds its programs to the device
// header.Parent, or to a node of its fabric, and returns the first of them. progress, if not nil, is
// called with the bytes that the server has. Errors are those of nfcomms.Device.Load, of the reader,
// and nfcomms.ErrTooLarge over the server's limit.
func (c *Client) LoadProgram(ctx context.Context, header *nfcommsv1.LoadProgramHeader, image io.Reader, progress func(received uint64)) (*nfcommsv1.Program, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Devices.LoadProgram(ctx)
	if err != nil {
		return nil, err
	}
	sent := make(chan error, 1)
	go func() {
		err := sendImage(stream, header, image)
		if err != nil {
			cancel() // nothing more is sent
		}
		sent <- err
	}()
	var program *nfcommsv1.Program
	for {
		r, err := stream.Recv()
		if err != nil {
			return loaded(program, err, sent, cancel)
		}
		if progress != nil {
			progress(r.GetReceivedBytes())
		}
		if r.GetProgram() != nil {
			program = r.GetProgram()
		}
	}
}

// loaded reports how an upload ended: the server's refusal counts more than what
// became of the sender, unless the sender's own failure was the cause.
func loaded(program *nfcommsv1.Program, err error, sent <-chan error, cancel func()) (*nfcommsv1.Program, error) {
	var e *Error
	refused := errors.As(err, &e) && e.Reason != ""
	if refused {
		cancel()
	}
	switch failed := <-sent; {
	case refused:
		return nil, err
	case failed != nil:
		return nil, failed
	case !errors.Is(err, io.EOF):
		return nil, err
	case program == nil:
		return nil, fmt.Errorf("upload ended without a program: %w", io.ErrUnexpectedEOF)
	}
	return program, nil
}

// sendImage sends header and chunks. A stream that the server ended is not the
// sender's failure: the receiving side reports why.
func sendImage(stream grpc.BidiStreamingClient[nfcommsv1.LoadProgramRequest, nfcommsv1.LoadProgramResponse], header *nfcommsv1.LoadProgramHeader, image io.Reader) error {
	err := stream.Send(&nfcommsv1.LoadProgramRequest{Part: &nfcommsv1.LoadProgramRequest_Header{Header: header}})
	for left := header.GetSizeBytes(); err == nil && left > 0; {
		chunk := make([]byte, min(left, uploadChunk))
		if _, err := io.ReadFull(image, chunk); err != nil {
			return fmt.Errorf("read image with %d bytes left: %w", left, err)
		}
		left -= uint64(len(chunk))
		err = stream.Send(&nfcommsv1.LoadProgramRequest{Part: &nfcommsv1.LoadProgramRequest_Chunk{Chunk: chunk}})
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	return stream.CloseSend()
}

// ListNodes yields all nodes of the fabric of a device, x first, each with the time
// at which it was read, as ListDevices.
func (c *Client) ListNodes(ctx context.Context, parent string) iter.Seq2[NodeReading, error] {
	return pages(func(token string) ([]NodeReading, string, error) {
		r, err := c.Fabrics.ListNodes(ctx, &nfcommsv1.ListNodesRequest{Parent: parent, PageSize: pageMost, PageToken: token})
		read := make([]NodeReading, 0, len(r.GetNodes()))
		for _, n := range r.GetNodes() {
			read = append(read, NodeReading{n, r.GetReadTime().AsTime()})
		}
		return read, r.GetNextPageToken(), err
	})
}

// NodeReading is a node of a fabric at one moment.
type NodeReading struct {
	*nfcommsv1.Node
	Time time.Time
}

// ListGroups yields all members of groups that the server shows, as ListDevices.
func (c *Client) ListGroups(ctx context.Context) iter.Seq2[*nfcommsv1.Group, error] {
	return pages(func(token string) ([]*nfcommsv1.Group, string, error) {
		r, err := c.Groups.ListGroups(ctx, &nfcommsv1.ListGroupsRequest{PageSize: pageMost, PageToken: token})
		return r.GetGroups(), r.GetNextPageToken(), err
	})
}

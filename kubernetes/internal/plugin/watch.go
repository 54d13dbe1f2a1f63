package plugin

import (
	"context"
	"time"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Pauses between tries, of the daemon and of the kubelet.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 2 * time.Second
)

// follow keeps the table as the daemon has it, until the context ends.
func (p *plugin) follow(ctx context.Context) {
	pause, said := retryFirst, make(logged)
	lost := time.NewTimer(p.Grace)
	defer lost.Stop()
	for {
		begun := false
		err := p.watch(ctx, func() {
			begun = true
			lost.Stop()
		})
		if ctx.Err() != nil {
			return
		}
		if begun {
			pause = retryFirst
			lost.Reset(p.Grace)
		}
		if said.news("daemon", err.Error()) || begun {
			p.Log.Warn("the daemon does not answer", "reason", err)
		}
		select {
		case <-lost.C:
			p.table.giveUp()
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, retryMost)
	}
}

// watch takes a snapshot and then changes, until the stream ends. begun is called after the snapshot.
func (p *plugin) watch(ctx context.Context, begun func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.Client.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{})
	if err != nil {
		return err
	}
	var snapshot []*nfcommsv1.Device
	for synced := false; ; {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		switch {
		case m.GetChange() == nfcommsv1.Change_CHANGE_SYNCED:
			synced = true
			p.table.replace(snapshot)
			p.Log.Info("the daemon answers", "devices", len(snapshot))
			begun()
		case !synced:
			snapshot = append(snapshot, m.GetDevice())
		default:
			p.table.change(m.GetDevice(), m.GetChange() == nfcommsv1.Change_CHANGE_DELETED)
		}
	}
}

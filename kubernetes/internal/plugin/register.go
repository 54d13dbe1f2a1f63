package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// kubeletSocket is the kubelet's in the folder of plugins.
	kubeletSocket = "kubelet.sock"
	// registerTime bounds one registration.
	registerTime = 5 * time.Second
	// checkEvery is when sockets are looked at without an event, as the system may lose events.
	checkEvery = 10 * time.Second
)

// errGone is for a folder that is no longer that of the kubelet: a mount in a container keeps the old one.
var errGone = errors.New("the kubelet's folder was removed: start again")

// register serves both resources, and registers them with each kubelet that comes, until ctx ends.
func (p *plugin) register(ctx context.Context) error {
	select {
	case <-p.table.begun: // an empty list would make the kubelet forget the devices
	case <-ctx.Done():
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", p.Folder, err)
	}
	defer func() { _ = watcher.Close() }() // it has nothing to lose
	if err := watcher.Add(p.Folder); err != nil {
		return fmt.Errorf("watch %s: %w", p.Folder, err)
	}
	w := &waiting{plugin: p, watcher: watcher, pause: retryFirst, said: make(logged)}
	path := filepath.Join(p.Folder, kubeletSocket)
	for {
		kubelet := identityOf(path)
		err := w.session(ctx, kubelet)
		p.Registered(false)
		if err == nil {
			w.pause = retryFirst
			continue
		}
		if ctx.Err() == nil && !errors.Is(err, errGone) {
			if w.said.news("session", err.Error()) {
				p.Log.Warn("not registered", "reason", err)
			}
			err = w.wait(ctx, w.pause, func() bool { return identityOf(path) != kubelet })
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		w.pause = min(2*w.pause, retryMost)
	}
}

// waiting is what sessions have in common.
type waiting struct {
	*plugin
	watcher *fsnotify.Watcher
	pause   time.Duration
	said    logged
}

// wait waits for a time, or until done says so after an event in the folder. It returns errGone once
// the folder is gone.
func (w *waiting) wait(ctx context.Context, most time.Duration, done func() bool) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		select {
		case e, open := <-w.watcher.Events:
			switch {
			case !open, e.Has(fsnotify.Remove|fsnotify.Rename) && filepath.Clean(e.Name) == filepath.Clean(w.Folder):
				return errGone
			case done():
				return nil
			}
		case <-w.watcher.Errors: // events were lost: look
			return nil
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// identityOf tells a socket from another that was made later at the same path; empty without one.
func identityOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return ""
	}
	return fmt.Sprintf("%v %d", inode(info), info.ModTime().UnixNano())
}

// session serves and registers, and ends without an error once the kubelet is another, or a socket
// is not there any more.
func (w *waiting) session(ctx context.Context, kubelet string) error {
	path := filepath.Join(w.Folder, kubeletSocket)
	if kubelet == "" {
		return fmt.Errorf("no kubelet at %s", path)
	}
	over := make(chan struct{})
	var servers []*server
	defer func() {
		close(over)
		for _, s := range servers {
			s.stop()
		}
	}()
	for _, r := range []struct {
		socket, resource string
		shared           bool
	}{{"nfcomms-device.sock", ResourceDevice, false}, {"nfcomms-share.sock", ResourceShare, true}} {
		s := &server{path: filepath.Join(w.Folder, r.socket), ended: make(chan struct{})}
		s.service = &service{plugin: w.plugin, name: r.resource, shared: r.shared, over: over}
		if err := s.start(); err != nil {
			return err
		}
		servers = append(servers, s)
	}
	for _, s := range servers {
		if err := w.announce(ctx, s); err != nil {
			return fmt.Errorf("register %s: %w", s.service.name, err)
		}
	}
	w.Log.Info("registered with the kubelet")
	w.said.news("session", "")
	w.Registered(true)
	changed := func() bool {
		return identityOf(path) != kubelet || slices.ContainsFunc(servers, func(s *server) bool { return identityOf(s.path) != s.identity })
	}
	for !changed() {
		if err := w.wait(ctx, checkEvery, changed); err != nil {
			return err
		}
	}
	w.Log.Info("the kubelet started anew, or a socket was removed")
	return nil
}

// announce registers a resource.
func (w *waiting) announce(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+filepath.Join(w.Folder, kubeletSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the call is over
	_, err = v1beta1.NewRegistrationClient(conn).Register(ctx, &v1beta1.RegisterRequest{
		Version: v1beta1.Version, Endpoint: filepath.Base(s.path), ResourceName: s.service.name, Options: s.service.options(),
	})
	return err
}

// server is the socket of one resource.
type server struct {
	path     string
	identity string // of the socket
	service  *service
	grpc     *grpc.Server
	ended    chan struct{}
}

// start listens and serves. A socket that is served by another process stays.
func (s *server) start() error {
	if conn, err := net.DialTimeout("unix", s.path, time.Second); err == nil {
		_ = conn.Close()
		return fmt.Errorf("another plugin serves %s: one of them has to end", s.path)
	}
	if info, err := os.Lstat(s.path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return fmt.Errorf("%s is there and is no socket", s.path)
		}
		if err := os.Remove(s.path); err != nil {
			return err
		}
	}
	l, err := net.Listen("unix", s.path)
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // another may be in its place by then
	s.identity = identityOf(s.path)
	s.grpc = grpc.NewServer()
	v1beta1.RegisterDevicePluginServer(s.grpc, s.service)
	go func() {
		defer close(s.ended)
		_ = s.grpc.Serve(l) // until stop
	}()
	return nil
}

// stop ends all calls, and removes the socket unless another is in its place.
func (s *server) stop() {
	s.grpc.Stop()
	<-s.ended
	if identityOf(s.path) == s.identity {
		_ = os.Remove(s.path) // the next one does so otherwise
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// converse plays the conversations to a program, then takes it through a walk of some thousand steps,
// as TestTalk, TestWalk and TestWalkDevice of internal/proto do, and those between two hosts. It returns
// the first that fails.
func converse(root, folder, program string) (how string, err error) {
	list, err := talk.Load(os.DirFS(filepath.Join(root, "internal/proto/testdata")), proto.Default())
	if err != nil {
		return "", err
	}
	p, err := talk.Start("sh", "-c", `ulimit -t 8; exec "$0"`, program)
	if err != nil {
		return "", err
	}
	defer func() { _ = p.Close() }() // a change may have ended it
	module := folder == "kmod/test"
	for _, c := range list {
		switch {
		case module && c.DeviceOnly == "":
			err = talk.PlayHost(c, p)
		case !module && c.HostOnly == "":
			err = talk.PlayDevice(c, p)
		}
		if err != nil {
			return "TestTalk/" + c.Name, nil
		}
	}
	if module {
		return walkModule(p)
	}
	w := talk.NewDeviceWalk(proto.DefaultDevice(), p, 1)
	for i := range 2000 {
		if w.Step() != nil {
			return fmt.Sprintf("TestWalkDevice, step %d", i), nil
		}
	}
	return converseHosts(root, p)
}

// converseHosts does the same between two hosts, as TestTalkHosts and TestWalkHosts do.
func converseHosts(root string, p *talk.Program) (string, error) {
	list, err := talk.LoadHosts(os.DirFS(filepath.Join(root, "internal/proto/testdata/hosts")))
	if err != nil {
		return "", err
	}
	for _, c := range list {
		if talk.PlayHosts(c, p) != nil {
			return "TestTalkHosts/" + c.Name, nil
		}
	}
	table, err := proto.NewConnectionTable(proto.ConnectionRows())
	if err != nil {
		return "", err
	}
	w := talk.NewHostsWalk(table, proto.EndRows(), p, 1)
	for i := range 500 {
		if w.Step() != nil {
			return fmt.Sprintf("TestWalkHosts, step %d", i), nil
		}
	}
	return "", errNotFound
}

// walkModule names the step of a walk in which table and module part.
func walkModule(p *talk.Program) (string, error) {
	w := talk.NewWalk(proto.Default(), 1)
	for i := range 20000 {
		line := w.Next()
		answers, err := p.Exchange([]string{line.Text})
		if err != nil || !line.Agrees(answers[0]) {
			return fmt.Sprintf("TestWalk, step %d", i), nil
		}
	}
	return "", errNotFound
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// converse plays the conversations to a program, then takes it through a walk of some thousand steps,
// as TestTalk, TestWalk and TestWalkDevice of internal/proto do. Those between two hosts, of ends that
// move and of processes that connect follow. It returns the first that fails.
func converse(root, folder, program string) (how string, err error) {
	list, err := talk.Load(os.DirFS(filepath.Join(root, "internal/proto/testdata")), proto.Default())
	if err != nil {
		return "", err
	}
	p, err := talk.Start("sh", "-c", `ulimit -t 30; exec "$0"`, program)
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
	walks := []func() (string, error){
		func() (string, error) {
			return walk("TestWalkDevice", 2000, talk.NewDeviceWalk(proto.DefaultDevice(), p, 1).Step)
		},
		func() (string, error) { return converseHosts(root, p) },
		func() (string, error) { return converseMoves(root, p) },
		func() (string, error) { return converseGuests(root, p) },
	}
	for _, w := range walks {
		if how, err = w(); !errors.Is(err, errNotFound) {
			return how, err
		}
	}
	return "", errNotFound
}

// walk takes steps, and names the one in which a program and the rows part.
func walk(test string, n int, step func() error) (string, error) {
	for i := range n {
		if step() != nil {
			return fmt.Sprintf("%s, step %d", test, i), nil
		}
	}
	return "", errNotFound
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
	return walk("TestWalkHosts", 500, talk.NewHostsWalk(table, proto.EndRows(), p, 1).Step)
}

// converseMoves does the same with an end that moves, as TestTalkMoves and TestWalkMoves do.
func converseMoves(root string, p *talk.Program) (string, error) {
	how, err := playEvents(root, "moves/move.talk", "TestTalkMoves", func(c *talk.GuestsTalk) error { return talk.PlayMoves(c, p) })
	if !errors.Is(err, errNotFound) {
		return how, err
	}
	table, err := proto.NewMoves(proto.MoveRows())
	if err != nil {
		return "", err
	}
	return walk("TestWalkMoves", 500, talk.NewMovesWalk(table, p, 1).Step)
}

// converseGuests does the same with a process that connects, as TestTalkGuests and TestWalkGuests do.
func converseGuests(root string, p *talk.Program) (string, error) {
	how, err := playEvents(root, "guests/dial.talk", "TestTalkGuests", func(c *talk.GuestsTalk) error { return talk.PlayGuests(c, p) })
	if !errors.Is(err, errNotFound) {
		return how, err
	}
	table, err := proto.NewDial(proto.DialRows())
	if err != nil {
		return "", err
	}
	return walk("TestWalkGuests", 100, talk.NewGuestsWalk(table, p, 1).Step)
}

// playEvents has conversations of a file that consist of events played, and names the first that a program does
// not play as it says.
func playEvents(root, file, test string, play func(*talk.GuestsTalk) error) (string, error) {
	f, err := os.Open(filepath.Join(root, "internal/proto/testdata", filepath.FromSlash(file)))
	if err != nil {
		return "", err
	}
	defer f.Close()
	list, err := talk.LoadGuests(f)
	if err != nil {
		return "", err
	}
	for _, c := range list {
		if play(c) != nil {
			return test + "/" + c.Name, nil
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

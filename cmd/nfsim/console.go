//go:build cgo

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/topology"
)

// counts is what the command count writes.
type counts struct {
	Sent        uint64 `json:"sent"`
	Came        uint64 `json:"came"`
	Bytes       uint64 `json:"bytes"`
	Changed     uint64 `json:"changed"`
	Doubled     uint64 `json:"doubled"`
	Refused     uint64 `json:"refused"`
	Unreachable uint64 `json:"unreachable"`
	Forwarded   uint64 `json:"forwarded"`
	Repeated    uint64 `json:"repeated"`
}

// console obeys commands, one a line, until there are no more or ctx ends. Each is
// answered; an empty line ends the answer.
func (n *node) console(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := make(chan string)
	go func() { // it ends with its input: nobody can end a read of that
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, more := <-lines:
			if !more {
				return nil
			}
			answer, err := n.obey(ctx, strings.Fields(line))
			if err != nil {
				answer = "error: " + err.Error() + "\n"
			}
			if _, err := io.WriteString(out, answer+"\n"); err != nil {
				return err
			}
		}
	}
}

// obey runs one command and returns its answer, which ends a line.
func (n *node) obey(ctx context.Context, words []string) (string, error) {
	commands := map[string]struct {
		arguments int
		run       func(ctx context.Context, a []string) (string, error)
	}{
		"map": {0, n.draw}, "route": {1, n.route}, "send": {3, n.send}, "done": {0, n.done}, "count": {0, n.count},
		"cut": {1, n.cut(true)}, "mend": {1, n.cut(false)}, "test": {2, n.test},
	}
	if len(words) == 0 {
		return "", nil
	}
	c, there := commands[words[0]]
	if !there || len(words)-1 != c.arguments {
		return "", fmt.Errorf("command %q: %w: want one of\n%s", strings.Join(words, " "), bridge.ErrInvalid, strings.TrimRight(consoleHelp, "\n"))
	}
	return c.run(ctx, words[1:])
}

func (n *node) draw(context.Context, []string) (string, error) {
	s, err := n.snapshot()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = s.Text(&text)
	return text.String(), err
}

func (n *node) route(_ context.Context, a []string) (string, error) {
	to, err := n.parseAddress(a[0])
	if err != nil {
		return "", err
	}
	link, detour, ok, err := n.Mesh.Next(n.own(), n.torus.Index(to))
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "none\n", nil
	case detour:
		return topology.Link(link).String() + "*\n", nil
	}
	return topology.Link(link).String() + "\n", nil
}

func (n *node) send(_ context.Context, a []string) (string, error) {
	to, err := n.parseAddress(a[0])
	if err != nil {
		return "", err
	}
	count, err := strconv.Atoi(a[1])
	if err != nil {
		return "", err
	}
	size, err := strconv.Atoi(a[2])
	if err != nil {
		return "", err
	}
	return "sending\n", n.Mesh.Start(mesh.Load{From: n.own(), To: n.torus.Index(to), Count: count, Size: size})
}

func (n *node) done(context.Context, []string) (string, error) {
	done, err := n.Mesh.Done(n.own())
	return fmt.Sprintln(done), err
}

func (n *node) count(context.Context, []string) (string, error) {
	t, err := n.Mesh.Totals()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(counts{t.Sent, t.Came, t.Bytes, t.Changed, t.Doubled, t.Refused, t.Unreachable, t.Forwarded, t.Repeated})
	return string(text) + "\n", err
}

func (n *node) cut(cut bool) func(context.Context, []string) (string, error) {
	return func(_ context.Context, a []string) (string, error) {
		l, err := topology.ParseLink(a[0])
		if err != nil {
			return "", err
		}
		return "ok\n", n.Mesh.Cut(n.own(), int(l), cut)
	}
}

// testWithin bounds a test from the console.
const testWithin = 10 * time.Second

func (n *node) test(ctx context.Context, a []string) (string, error) {
	l, err := topology.ParseLink(a[0])
	if err != nil {
		return "", err
	}
	words, err := strconv.ParseUint(a[1], 10, 64)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, testWithin)
	defer cancel()
	t, err := n.Mesh.Test(ctx, n.own(), int(l), words)
	return fmt.Sprintf("%d words, %d wrong\n", t.Words, t.Wrong), err
}

package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// hostileText does something to a terminal by C0, C1, DEL and the direction of writing.
const hostileText = "a\x1b]0;x\x07\x1b[31mb\u009b2J\u202ec\x7fd\ne"

// fill puts hostile text into every field of a message that takes text, and one into every number.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.ContainingOneof() != nil && m.WhichOneof(f.ContainingOneof()) != nil {
			continue
		}
		switch {
		case f.IsMap():
			if v := m.Mutable(f).Map(); f.MapValue().Kind() == protoreflect.StringKind {
				v.Set(protoreflect.ValueOfString(hostileText).MapKey(), protoreflect.ValueOfString(hostileText))
			}
		case f.IsList() && f.Message() != nil && depth > 0:
			fill(m.Mutable(f).List().AppendMutable().Message(), depth-1)
		case f.IsList() && f.Message() == nil:
			m.Mutable(f).List().Append(scalarOf(m, f))
		case !f.IsList() && f.Message() != nil && depth > 0:
			fill(m.Mutable(f).Message(), depth-1)
		case !f.IsList() && f.Message() == nil:
			m.Set(f, scalarOf(m, f))
		}
	}
}

// scalarOf is a value of a field; names are those of resources, as the client expects.
func scalarOf(m protoreflect.Message, f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		switch prefix := map[string]string{
			"Device": "devices/", "Board": "devices/", "Channel": "devices/x/channels/", "Program": "devices/x/programs/", "Process": "devices/x/processes/",
		}[string(m.Descriptor().Name())]; {
		case f.Name() == "next_page_token":
			return protoreflect.ValueOfString("")
		case f.Name() == "name":
			return protoreflect.ValueOfString(prefix + hostileText)
		}
		return protoreflect.ValueOfString(hostileText)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(hostileText))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(1)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(1)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(1)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(1)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(1)
	default:
		return protoreflect.ValueOfFloat64(1)
	}
}

// hostileServer answers every call with hostile text, or with an error of it. It returns its address.
func hostileServer(t *testing.T, fails bool) string {
	file := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", file)
	require.NoError(t, err)
	srv := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		full, _ := grpc.MethodFromServerStream(s)
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(full[1:], "/", ".")))
		if err != nil || fails {
			return status.Error(codes.FailedPrecondition, hostileText)
		}
		answer, err := protoregistry.GlobalTypes.FindMessageByName(d.(protoreflect.MethodDescriptor).Output().FullName())
		if err != nil {
			return err
		}
		m := answer.New()
		fill(m, 6)
		if err := s.SendMsg(proto.Message(m.Interface())); err != nil {
			return err
		}
		return status.Error(codes.NotFound, hostileText)
	}))
	go func() { _ = srv.Serve(l) }() // it ends with Stop
	t.Cleanup(srv.Stop)
	return "unix://" + file
}

// hostileArgs are arguments that commands take by the words of their usage.
var hostileArgs = map[string]string{
	"DEVICE": "sim0", "DEVICE...": "sim0", "[DEVICE]": "sim0", "TARGET": "100", "[MESSAGE]": "x", "PROCESS": "7", "PROGRAM": "p",
	"NODE": "1.0.0", "LINK": "x+", "BAR": "0", "OFFSET": "0", "VALUE": "1", "VECTOR": "1",
}

// commandLines returns a command line for each command that asks a server.
func commandLines(t *testing.T, image string) (lines [][]string) {
	var walk func(c *cobra.Command, words []string)
	walk = func(c *cobra.Command, words []string) {
		for _, sub := range c.Commands() {
			walk(sub, append(words[:len(words):len(words)], sub.Name()))
		}
		if !c.Runnable() || len(words) == 0 || c.HasParent() && (c.Parent().Name() == "completion" || c.Parent().Name() == "program") {
			return
		}
		for _, word := range strings.Fields(c.Use)[1:] {
			switch arg, ok := hostileArgs[word]; {
			case word == "FILE":
				words = append(words, image)
			case ok:
				words = append(words, arg)
			}
		}
		lines = append(lines, words)
	}
	walk(newRoot(&app{}), nil)
	return lines
}

// TestNothingReachesTheTerminal: whatever a server says, no command writes anything but text.
func TestNothingReachesTheTerminal(t *testing.T) {
	image := filepath.Join(t.TempDir(), "none.so")
	skip := map[string]bool{"completion": true, "man": true, "help": true, "selftest": true}
	for _, fails := range []bool{false, true} {
		address := hostileServer(t, fails)
		for _, line := range commandLines(t, image) {
			if skip[line[0]] {
				continue
			}
			for _, format := range formats {
				args := append([]string{"--address", address, "--server-user", "*", "--timeout", "2s", "-o", format}, line...)
				if line[0] == "top" {
					args = append(args, "--once")
				}
				isText(t, args)
			}
			isText(t, append([]string{"__complete", "--address", address, "--server-user", "*"}, append(line, "")...))
		}
	}
}

// isText runs a command and checks that it writes lines of text.
func isText(t *testing.T, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // for those that follow
	defer cancel()
	var out, err bytes.Buffer
	run(ctx, args, streams{strings.NewReader("x"), &out, &err}, func(string) string { return "" })
	for _, r := range out.String() + err.String() {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%q wrote %U", args, r)
			return
		}
	}
}

// TestLoadThatStands: an upload that does not move ends after --timeout, and the error says so.
func TestLoadThatStands(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	srv := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		<-s.Context().Done()
		return s.Context().Err()
	}))
	go func() { _ = srv.Serve(l) }() // it ends with Stop
	defer srv.Stop()
	image := filepath.Join(dir, "image.so")
	require.NoError(t, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"--address", "unix://" + l.Addr().String(), "--server-user", "*", "--timeout", "10ms", "load", "sim0", image},
		streams{nil, &out, &errs}, func(string) string { return "" })
	require.Equal(t, exitTimeout, code, errs.String())
	require.Contains(t, errs.String(), "nothing moved for 10ms (see --timeout)")
}

package nfcomms

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// errBroken is the error of each call of a back end that is broken.
var errBroken = fmt.Errorf("broken: %w", ErrNotSupported)

// brokenDevice is a back end whose calls fail; it opens channels, regions and listeners that are
// broken as well, unless spared.
type brokenDevice struct {
	bridge.Device // nil: there is no call of it that does not return an error
	open          error
}

func (d brokenDevice) Info() Info              { return Info{} }
func (d brokenDevice) Health() (Health, error) { return Health{}, errBroken }
func (d brokenDevice) Subscribe(context.Context, Target) (bridge.Channel, error) {
	return brokenChannel{}, d.open
}
func (d brokenDevice) Start(context.Context, Program) (Process, error)  { return Process{}, d.open }
func (d brokenDevice) Stop(context.Context, ProcessID) error            { return errBroken }
func (d brokenDevice) Running(context.Context, ProcessID) (bool, error) { return false, errBroken }
func (d brokenDevice) Load(context.Context, []byte) (string, error)     { return "", errBroken }
func (d brokenDevice) Programs(context.Context) ([]string, error)       { return nil, errBroken }
func (d brokenDevice) Memory(context.Context, int) (bridge.Memory, error) {
	return bridge.Memory{}, errBroken
}
func (d brokenDevice) Alloc(int) (bridge.Region, error)       { return brokenRegion{}, d.open }
func (d brokenDevice) Register([]byte) (bridge.Region, error) { return brokenRegion{}, d.open }
func (d brokenDevice) Import(int) (bridge.Region, error)      { return brokenRegion{}, d.open }
func (d brokenDevice) Reset(context.Context) error            { return errBroken }
func (d brokenDevice) Close() error                           { return errBroken }
func (d brokenDevice) Fabric() bridge.Fabric                  { return brokenFabric{} }
func (d brokenDevice) Dial(context.Context, string, bridge.DialOptions) (bridge.Channel, error) {
	return nil, errBroken
}
func (d brokenDevice) Listen(context.Context, bridge.ListenOptions) (bridge.Listener, error) {
	return brokenListener{}, d.open
}

type brokenRegion struct{}

func (brokenRegion) Bytes() []byte { return nil }
func (brokenRegion) Close() error  { return errBroken }

type brokenListener struct{}

func (brokenListener) Target() Target                                 { return 7 }
func (brokenListener) Accept(context.Context) (bridge.Channel, error) { return nil, errBroken }
func (brokenListener) Close() error                                   { return errBroken }

type brokenChannel struct{ bridge.Channel }

func (brokenChannel) Target() Target                                        { return 7 }
func (brokenChannel) Send(context.Context, []byte) error                    { return errBroken }
func (brokenChannel) Receive(context.Context, []byte) (int, error)          { return 0, errBroken }
func (brokenChannel) ReceiveFunc(context.Context, func([]byte) error) error { return errBroken }
func (brokenChannel) SendInd(context.Context, []byte) error                 { return errBroken }
func (brokenChannel) ReceiveInd(context.Context, []byte) error              { return errBroken }
func (brokenChannel) Next(context.Context) (Offer, error)                   { return Offer{}, errBroken }
func (brokenChannel) TrySend([]byte, chan<- struct{}) (bool, error)         { return false, errBroken }
func (brokenChannel) TryReceive([]byte) (int, bool, error)                  { return 0, false, errBroken }
func (brokenChannel) TryNext() (Offer, bool, error)                         { return Offer{}, false, errBroken }
func (brokenChannel) TryReceiveInd(context.Context, []byte) (bool, error)   { return false, errBroken }
func (brokenChannel) Arm(abi.Direction, chan<- struct{}) error              { return errBroken }
func (brokenChannel) Disarm(abi.Direction, chan<- struct{})                 {}
func (brokenChannel) CloseSend() error                                      { return errBroken }
func (brokenChannel) CloseReceive() error                                   { return errBroken }
func (brokenChannel) Close() error                                          { return errBroken }
func (brokenChannel) TrySendInd(context.Context, []byte, chan<- struct{}) (bool, error) {
	return false, errBroken
}
func (brokenChannel) ReceiveIndFunc(context.Context, uint64, func() ([]byte, error), func([]byte) error) error {
	return errBroken
}

type brokenFabric struct{}

func (brokenFabric) State(context.Context) (bridge.FabricState, error) {
	return bridge.FabricState{}, errBroken
}
func (brokenFabric) Route(context.Context, abi.Node, abi.Node) ([]bridge.FabricHop, error) {
	return nil, errBroken
}
func (brokenFabric) Device(context.Context, abi.Node) (bridge.Device, error)        { return nil, errBroken }
func (brokenFabric) CutLink(context.Context, abi.Node, int, bool) error             { return errBroken }
func (brokenFabric) KillNode(context.Context, abi.Node, bool) error                 { return errBroken }
func (brokenFabric) SilenceNode(context.Context, abi.Node) error                    { return errBroken }
func (brokenFabric) Put(context.Context, bridge.FabricWindow, uint64, []byte) error { return errBroken }
func (brokenFabric) Get(context.Context, bridge.FabricWindow, uint64, []byte) error { return errBroken }
func (brokenFabric) TestLink(context.Context, abi.Node, int, uint64) (bridge.LinkTest, error) {
	return bridge.LinkTest{}, errBroken
}
func (brokenFabric) Window(context.Context, []byte, bridge.WindowAccess) (bridge.HostWindow, error) {
	return nil, errBroken
}

// failing lists the exported methods of this package's source whose last result is an error, as
// "Type.Method"; without those of errors, and of interfaces that other packages define.
func failing(t *testing.T) map[string]bool {
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() || f.Type.Results == nil {
				continue
			}
			last, _ := f.Type.Results.List[len(f.Type.Results.List)-1].Type.(*ast.Ident)
			if of := receiverOf(f); last != nil && last.Name == "error" && !strings.HasSuffix(of, "Error") {
				found[of+"."+f.Name.Name] = true
			}
		}
	}
	return found
}

// receiverOf is the name of a method's type.
func receiverOf(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		}
	}
}

// argument makes a value of a type.
func argument(ctx context.Context, t reflect.Type, given ...any) reflect.Value {
	for _, g := range append(given, ctx, make([]byte, 8)) {
		if v := reflect.ValueOf(g); v.Type().AssignableTo(t) {
			return v
		}
	}
	if t.Kind() == reflect.Func {
		return reflect.MakeFunc(t, func([]reflect.Value) (out []reflect.Value) {
			for o := range t.NumOut() {
				out = append(out, reflect.Zero(t.Out(o)))
			}
			return out
		})
	}
	return reflect.Zero(t)
}

// TestEveryErrorIsAnOpError: each method of each type that can fail returns an *OpError, whose text
// is one line: over a back end whose calls all fail, and with a context that has ended.
func TestEveryErrorIsAnOpError(t *testing.T) {
	dev, refusing := newDevice(brokenDevice{}, "broken:"), newDevice(brokenDevice{open: errBroken}, "broken:")
	live := background(t)
	over, cancel := context.WithCancel(live)
	cancel()
	ch, err := dev.Subscribe(live, 7)
	require.NoError(t, err)
	l, err := dev.Listen(live, "")
	require.NoError(t, err)
	region, err := dev.Alloc(8)
	require.NoError(t, err)
	instance, err := dev.Run(live, Program{Targets: 2})
	require.NoError(t, err)
	pending := &Future{done: make(chan struct{}), cancel: func() {}, fail: ch.fail}
	var q Completions
	require.NoError(t, q.Add(pending))

	want, called := failing(t), map[string]bool{}
	for _, of := range []any{
		dev, refusing, ch, l, region, instance, &q, pending, dev.fabric(), Supervisor{},
		&Generation{dev: refusing, epoch: newEpoch(1)},
		ChanOf[int32](ch), ChanOf[[64]int32](ch), ChanOf[string](ch),
		SendCase(ch, nil), SendIndCase(ch, []byte{1}), ReceiveCase(ch, nil, nil), ReceiveIndCase(ch, []byte{1}), OfferCase(ch, nil),
	} {
		v := reflect.ValueOf(of)
		name, _, _ := strings.Cut(reflect.Indirect(v).Type().Name(), "[")
		for i := range v.NumMethod() {
			m := v.Type().Method(i)
			call := name + "." + m.Name
			f := v.Method(i).Type()
			if last := f.NumOut() - 1; last < 0 || f.Out(last) != reflect.TypeFor[error]() {
				continue
			}
			called[call] = true
			for _, ctx := range []context.Context{live, over} {
				waits := of == any(pending) || of == any(&q)
				if waits {
					ctx = over
				}
				var in []reflect.Value
				for i := range f.NumIn() {
					if f.IsVariadic() && i == f.NumIn()-1 {
						break
					}
					in = append(in, argument(ctx, f.In(i), refusing, pending))
				}
				out := v.Method(i).Call(in)
				err, _ := out[len(out)-1].Interface().(error)
				opens := of == any(dev) && err == nil             // it has channels, regions, listeners
				opens = opens || call == "Chan.Err" && err == nil // its type is suitable
				if !opens {
					isOpError(t, call, err)
				}
			}
		}
	}
	for call := range want {
		assert.True(t, called[call], "no case calls %s", call)
	}
	_, err = newDevice(brokenPorts{}, "broken:").Run(live, Program{})
	isOpError(t, "Run, whose port cannot be subscribed", err)
	for _, err := range q.Each(over) {
		isOpError(t, "Completions.Each", err)
	}
	var failed Completions
	for range 2 {
		require.NoError(t, failed.Add(SendCase(ch, nil).Start(live)))
	}
	err = failed.Wait(live)
	isOpError(t, "Completions.Wait for several", err)
	require.EqualError(t, err, "wait: send broken: target 7: broken: not supported; send broken: target 7: broken: not supported")
}

// brokenPorts starts programs whose ports cannot be subscribed.
type brokenPorts struct{ brokenDevice }

func (brokenPorts) Subscribe(context.Context, Target) (bridge.Channel, error) { return nil, errBroken }

// isOpError requires an *OpError itself, with a text of one line.
func isOpError(t *testing.T, call string, err error) {
	t.Helper()
	if assert.Error(t, err, call) {
		assert.IsType(t, &OpError{}, err, call)
		assert.NotContains(t, err.Error(), "\n", call)
	}
}

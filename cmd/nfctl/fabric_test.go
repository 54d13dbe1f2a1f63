//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// lateFabric has a broken link, and no time for a second call.
type lateFabric struct {
	nfcommsv1.FabricServiceClient
	calls int
}

func (f *lateFabric) GetFabric(context.Context, *nfcommsv1.GetFabricRequest, ...grpc.CallOption) (*nfcommsv1.GetFabricResponse, error) {
	if f.calls++; f.calls > 1 {
		return nil, status.Error(codes.DeadlineExceeded, "late")
	}
	return &nfcommsv1.GetFabricResponse{Links: &nfcommsv1.LinkCounts{Broken: 1}}, nil
}

// TestLinkTestIsTold: the table of a link test has the rate and its bound, or says that there is none.
func TestLinkTestIsTold(t *testing.T) {
	for words, want := range map[uint64]string{
		0:         "0 words of 128 bits in 0.05 s, 0 wrong\nnothing was checked\n",
		1_000_000: "1000000 words of 128 bits in 0.05 s, 0 wrong\nbit error ratio 0, below 3.6e-08 at a confidence of 99 %\n",
	} {
		var out bytes.Buffer
		r := &nfcommsv1.TestLinkResponse{Words: words, Took: durationpb.New(50 * time.Millisecond), DeviceKind: nfcommsv1.Device_KIND_HARDWARE}
		linkTestOf("sim0", "0.0.0", "x+", 0.99, r).table(&printer{w: &out})
		require.Equal(t, "link x+ of 0.0.0, hardware: "+want, out.String())
	}
}

// TestLinksThatStayBroken: what was seen is said also if the server is the first to end the wait.
func TestLinksThatStayBroken(t *testing.T) {
	err := waitForLinks(t.Context(), &control.Client{Fabrics: &lateFabric{}}, "")
	require.ErrorContains(t, err, "1 links are broken, 0 unknown: ")
	require.Equal(t, exitTimeout, exitCode(t.Context(), err))
}

// TestFabricOfProcesses: the fabric of other processes is drawn, and its links are cut and
// mended, as it is: with links that carry nothing, for which nobody waits.
func TestFabricOfProcesses(t *testing.T) {
	d := newSharedDevice(t)
	pair := testcert.New(t).Issue(t, "node", "")
	cert, key := filepath.Join(t.TempDir(), "c"), filepath.Join(t.TempDir(), "k")
	require.NoError(t, os.WriteFile(cert, pair.Cert, 0o600))
	require.NoError(t, os.WriteFile(key, pair.Key, 0o600))
	nobody := strings.Repeat("0", 64)
	d.start(nil, "--node", "0.0.0", "--torus", "2x1x1", "--listen", "127.0.0.1:0", "--peer", "1.0.0="+nobody, "--certificate", cert, "--key", key)
	do := func(args ...string) string {
		t.Helper()
		r := nfctl(t.Context(), t, append(args, "--device", "shm:"+d.path)...)
		require.Equal(t, exitOK, r.code, "%v: %s%s", args, r.out, r.err)
		return r.out
	}
	drawn := do("fabric", "--interval", "0")
	require.Contains(t, drawn, "0 normal, 0 sick, 2 broken, 0 unknown")
	require.NotContains(t, drawn, "windows")
	dev, err := nfcomms.Open(t.Context(), "shm:"+d.path)
	require.NoError(t, err)
	memory, err := dev.Alloc(4096)
	require.NoError(t, err)
	_, err = fabric.Of(dev).Window(t.Context(), memory.Bytes(), fabric.Read)
	require.NoError(t, err)
	require.Contains(t, do("fabric", "--interval", "0"), "windows of memory of nodes: 1, 4 KiB\n")
	require.NoError(t, dev.Close())
	require.Contains(t, do("fabric", "link", "cut", "0.0.0", "x+"), "cut")
	require.Contains(t, do("fabric", "link", "mend", "0.0.0", "x+"), "mended")
	require.Contains(t, nfctl(t.Context(), t, "fabric", "link", "test", "0.0.0", "x+", "--device", "shm:"+d.path).err, "link")
}

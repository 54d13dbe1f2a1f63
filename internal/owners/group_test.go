package owners

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGroups: a group is named as far as what a process cannot leave by making groups.
func TestGroups(t *testing.T) {
	const pod = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0a1b2c3d_0000_4000_8000_0123456789ab.slice"
	long := strings.Repeat("x", 300)
	for text, want := range map[string]string{
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n":  "/user.slice/user-1000.slice/user@1000.service",
		"0::/system.slice/docker-0123abc.scope/made/below\n":                    "/system.slice/docker-0123abc.scope",
		"0::" + pod + "/cri-containerd-1.scope\n":                               pod,
		"0::/kubepods/burstable/pod0a1b2c3d-0000-4000-8000-0123456789ab/0123/x": "/kubepods/burstable/pod0a1b2c3d-0000-4000-8000-0123456789ab",
		"12:cpu:/docker/ab\n1:name=systemd:/docker/abc\n0::/\n":                 "/docker/abc",
		"0::/a/b/c/d/e\n":    "/a/b/c",
		"0::/../../x/y/z\n":  "/../../x",
		"0::/a:b.service\n":  "/a:b.service",
		"0::/" + long + "\n": "/" + long[:mostGroup-1],
		"0::/\n":             "",
		"":                   "",
		"0::\nx\n:\n":        "",
	} {
		require.Equal(t, want, groupIn(text), "%q", text)
	}
	require.Empty(t, GroupOf(0))
	require.Empty(t, GroupOf(-1))
	require.Empty(t, GroupOf(math.MaxInt32))
	own, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	require.Equal(t, groupIn(string(own)), GroupOf(int32(os.Getpid())))
}

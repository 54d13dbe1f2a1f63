package cluster

import (
	"os"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// script is a part of a document that its reader is to run.
var script = regexp.MustCompile("(?s)```sh\n(.*?)```")

// elsewhere are the commands of the document that other tests run: the image, the chart, and nfctl
// with certificates.
var elsewhere = regexp.MustCompile(`^(make image|ctr -n k8s.io images import bin/nfcomms-oci.tar|helm (install|upgrade) .*|nfctl --address .* fabric)$`)

// document follows docs/kubernetes.md from its begin to its end, each command as it stands there.
func (c *cluster) document() {
	text, err := os.ReadFile("../../../docs/kubernetes.md")
	require.NoError(c, err)
	applied := 0
	for _, block := range script.FindAllSubmatch(text, -1) {
		for line := range strings.Lines(string(block[1])) {
			command, _, _ := strings.Cut(strings.TrimSpace(line), " #")
			words := strings.Fields(command)
			switch {
			case len(words) == 0, elsewhere.MatchString(strings.TrimSpace(command)):
			case len(words) == 4 && strings.Join(words[:3], " ") == "kubectl apply -k":
				applied++
				c.folder(strings.TrimPrefix(words[3], "deploy/kubernetes/"))
			case len(words) == 4 && strings.Join(words[:3], " ") == "kubectl apply -f":
				applied++
				file, err := os.ReadFile("../../../" + words[3])
				require.NoError(c, err)
				c.apply(file)
			default:
				require.Fail(c, "docs/kubernetes.md has a command that the test does not know", line)
			}
		}
	}
	require.GreaterOrEqual(c, applied, 7)
}

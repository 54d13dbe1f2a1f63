package lint

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The calls of the paper that added transfers to messages, in the three APIs. A message takes a
// buffer and its size, as before there were transfers; a transfer takes the same and is another
// call. A program that was written for either goes on to build, so these do not change.
var papersCalls = map[string][]string{
	"pkg/nfcomms/": {
		"func (c *Channel) Send(ctx context.Context, msg []byte) error {",
		"func (c *Channel) Receive(ctx context.Context, buf []byte) (int, error) {",
		"func (c *Channel) SendInd(ctx context.Context, data any, size ...int) error {",
		"func (c *Channel) ReceiveInd(ctx context.Context, data any, size ...int) (int, error) {",
	},
	"kmod/lib/libnfcomms.h": {
		"NFCOMMS_API int nfcomms_send(struct nfcomms_dev *dev, uint32_t channel, const void *message, size_t size);",
		"NFCOMMS_API int nfcomms_receive(struct nfcomms_dev *dev, uint32_t channel, void *message, size_t size);",
		"NFCOMMS_API int nfcomms_send_ind(struct nfcomms_dev *dev, uint32_t channel, const void *data, uint64_t size, struct nfcomms_failure *failure);",
		"NFCOMMS_API int nfcomms_receive_ind(struct nfcomms_dev *dev, uint32_t channel, void *data, uint64_t size, struct nfcomms_failure *failure);",
	},
	"firmware/nfc_fw.h": {
		"int channel_read(struct nfc_channel *ch, void *buf, size_t n);",
		"int channel_write(struct nfc_channel *ch, const void *buf, size_t n);",
		"int channel_read_ind(struct nfc_channel *ch, uint64_t address, uint64_t size);",
		"int channel_write_ind(struct nfc_channel *ch, uint64_t address, uint64_t size);",
		"int (*channel_read)(struct nfc_channel *ch, void *buf, size_t n);",
		"int (*channel_write)(struct nfc_channel *ch, const void *buf, size_t n);",
		"int (*channel_read_ind)(struct nfc_channel *ch, uint64_t address, uint64_t size);",
		"int (*channel_write_ind)(struct nfc_channel *ch, uint64_t address, uint64_t size);",
	},
}

var anyBlanks = regexp.MustCompile(`\s+`)

// missingCalls lists the calls that a text of files does not have.
func missingCalls(text string, calls []string) []string {
	text = anyBlanks.ReplaceAllString(text, " ")
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return strings.Contains(text, call) })
}

// TestPapersCalls: the calls of the paper have the parameters that they had.
func TestPapersCalls(t *testing.T) {
	for at, calls := range papersCalls {
		var text strings.Builder
		for _, f := range tree(t, ".go", ".h") {
			if !f.isTest() && (f.path == at || strings.HasSuffix(at, "/") && f.dir()+"/" == at) {
				text.WriteString(f.text)
			}
		}
		for _, call := range missingCalls(text.String(), calls) {
			t.Errorf("%s: %s has changed", at, call)
		}
	}
}

func TestPapersCallsFinds(t *testing.T) {
	call := papersCalls["firmware/nfc_fw.h"][:1]
	report(t, missingCalls("int channel_read(struct nfc_channel *ch,\n\t\t void *buf, size_t n);", call))
	wantOne(t, missingCalls("int channel_read(struct nfc_channel *ch, void *buf, uint32_t n);", call), "size_t n")
}

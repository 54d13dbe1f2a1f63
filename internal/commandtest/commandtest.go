package commandtest

import (
	"bytes"
	"context"

	"github.com/nfcomms/nfcomms/internal/command"
)

// Run runs a command line and returns its exit code and what it printed.
func Run(ctx context.Context, name string, run command.Func, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = command.Run(ctx, name, run, args, &out, &errs)
	return code, out.String(), errs.String()
}

package subprocess

import (
	"context"
	"fmt"
	"time"
)

// Program builds a Go program of this tree, by its folder or its import path, as the file out. Unlike
// "go build", "go run" keeps what it links in the build cache: the first call links the program, and
// later ones copy it.
func Program(ctx context.Context, out, name string) error {
	cmd := Command(ctx, "go", "run", "-buildvcs=false", "-exec", "cp", name, out)
	cmd.WaitDelay = time.Minute // on a busy machine a second passes before the output is read
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, said)
	}
	return nil
}

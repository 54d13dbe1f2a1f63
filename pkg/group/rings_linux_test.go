package group

import (
	"fmt"
	"os"
)

func init() {
	transports["rings"] = func(int) func(int) Transport {
		name := fmt.Sprintf("group-%d-%d", os.Getpid(), names.Add(1))
		return func(int) Transport { return Rings{Name: name} }
	}
}

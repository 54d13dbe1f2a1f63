package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary something else than a test: the daemon, or one
// of its clients.
const childEnv = "NFCOMMS_DAEMON_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "daemon":
		main()
	case "probe":
		os.Exit(probe(os.Args[1]))
	default:
		os.Exit(attack(os.Getenv(childEnv), os.Args[1]))
	}
}

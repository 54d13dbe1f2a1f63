package crowd

import (
	"testing"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/load"
)

func TestMain(m *testing.M) { clitest.Main(m, Add, load.Add) }

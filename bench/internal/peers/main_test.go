package peers

import (
	"testing"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
)

func TestMain(m *testing.M) { clitest.Main(m, Add, compare.Add) }

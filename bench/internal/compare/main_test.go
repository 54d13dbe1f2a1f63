package compare

import (
	"testing"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, Add) }

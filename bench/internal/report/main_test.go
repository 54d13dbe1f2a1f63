package report

import (
	"testing"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/groups"
	"github.com/nfcomms/nfcomms/bench/internal/hmf"
	"github.com/nfcomms/nfcomms/bench/internal/load"
)

func TestMain(m *testing.M) { clitest.Main(m, Add, compare.Add, load.Add, groups.Add, hmf.Add) }

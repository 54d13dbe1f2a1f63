package report

import (
	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/groups"
	"github.com/nfcomms/nfcomms/bench/internal/hmf"
)

// ringMeasurements are those between processes.
func ringMeasurements() []measurement {
	ring := func() cli.Report { return &hmf.Report{} }
	return []measurement{
		{groups.Add, "group", "group", "--short", func() cli.Report { return &groups.Report{} }},
		{hmf.Add, "hmf", "hmf one", "--rounds 3 --packages 60", ring},
		{hmf.Add, "hmf-small", "hmf one --payload 56 --packet 4KiB --size 1009 --batch 32 --packages 2000", "--rounds 3 --peers unix,pipe", ring},
		{hmf.Add, "hmf-multi", "hmf multi --pairs 1,2,4", "--packages 60", ring},
	}
}

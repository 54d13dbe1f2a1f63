package main

// ringMeasurements are those between processes.
func ringMeasurements() []measurement {
	hmf := func() report { return &HMFReport{} }
	return []measurement{
		{addGroups, "group", "group", "--short", func() report { return &GroupReport{} }},
		{addHMF, "hmf", "hmf one", "--rounds 3 --packages 60", hmf},
		{addHMF, "hmf-small", "hmf one --payload 56 --packet 4KiB --size 1009 --batch 32 --packages 2000", "--rounds 3 --peers unix,pipe", hmf},
		{addHMF, "hmf-multi", "hmf multi --pairs 1,2,4", "--packages 60", hmf},
	}
}

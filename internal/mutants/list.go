package main

// Folders of the reports.
const (
	model   = "bench/internal/papers/"
	latency = "bench/internal/latency/latency.go"
	through = "bench/internal/throughput/report.go"
	stack   = "bench/internal/stack/"
	hmf     = "bench/internal/hmf/"
	links   = "bench/internal/links/fabric_run.go"
	report  = "bench/internal/report/paper"
	spikes  = "apps/spikes/"
	peers   = "bench/internal/peers/"
	crowd   = "bench/internal/crowd/"
	scale   = "bench/internal/scale/"
	idle    = "bench/internal/idle/idle.go"
	groups  = "bench/internal/groups/report.go"
)

// Tests that are quick and computed: they measure nothing.
const (
	stackTests      = "TestCurve|TestBesideCPU|TestGainTable|TestSlides|TestFindings|TestTableColumns|TestStackBeside|TestBudgets|TestBufferFindings|TestCut"
	hmfTests        = "TestReportRows|TestGenerateMeasures|TestMerge|TestRates|TestPairFindings|TestSizeFindings"
	reportTests     = "TestTable2|TestFigure4|TestRingItems|TestBuildsItem|TestPairsItem|TestLinkFlows|TestStackSweep|TestStackLoose|TestGroupItem|TestAgreement|TestPrinted|TestStackLanguages"
	spikeTests      = "TestSavedColumns|TestPrintedFigures|TestMeasured"
	modelTests      = "TestPublishedFigures|TestSimulation|TestYellow|TestReported|TestPCIe|TestCumulative"
	crowdTests      = "TestCrowdColumns|TestCrowdGoals"
	scaleTests      = "TestScaleColumns|TestScaleGoals"
	idleTests       = "TestIdleColumns"
	groupTests      = "TestGroupColumns|TestGroupFindings"
	throughputTests = "TestConclude|TestCurveGoals|TestReportPlot"
)

// mistakes are those that a report could make and that a reader would not see.
var mistakes = []mistake{
	{what: "the copy to the transfer's memory is left out", file: latency, from: "				copy(bulk, local)\n", test: "TestExtraCopy"},
	{what: "the copy from the transfer's memory is left out", file: latency, from: "				copy(local, bulk)\n", test: "TestExtraCopy"},
	{what: "ratios are of means only", file: latency, from: "P50: indirect.Ns.P50 / direct.Ns.P50", to: "P50: indirect.Ns.Mean / direct.Ns.Mean", test: "TestConclude"},
	{what: "a batch counts as a message", file: latency, from: "Ns: s.rec.Stat(batch)", to: "Ns: s.rec.Stat(1)", test: "TestConclude"},
	{what: "CPU time is wall time", file: latency, from: "CPUS: s.cpu.Seconds()", to: "CPUS: s.wall.Seconds()", test: "TestConclude"},
	{what: "the tail of a normal distribution grows with the percentile", file: latency, from: "math.Erfinv(1-2/x)/", to: "x/", test: "TestDraw"},
	{what: "CPU time is not measured", file: latency, from: "	s.cpu += cli.CPUTime() - cpu\n", to: "	_ = cpu\n", test: "TestLatencyJSON"},

	{what: "processor time of one direction for both", file: through, from: "float64(cpu) / n / float64(2*payload)", to: "float64(cpu) / n / float64(payload)", test: throughputTests},
	{what: "the rate of d2h is h2d's", file: through, from: "g := cli.GBs(payload, e.moved[direction])", to: "g := cli.GBs(payload, e.moved[0])", test: throughputTests},
	{what: "the model line in GB/s", file: through, from: "8*c.Hockney.Rate(float64(pt.Size))", to: "c.Hockney.Rate(float64(pt.Size))", test: throughputTests},
	{what: "flat is the most over the most", file: through, from: "return least / most", to: "return most / most", test: throughputTests},
	{what: "the best size in place of the worst", file: through, from: "g.Value = min(g.Value, p.GBs.Mean/one[p.Size])", to: "g.Value = p.GBs.Mean / one[p.Size]", test: throughputTests},

	{what: "whole round trips as half ones", file: links, from: ".Nanoseconds()) / 2 }", to: ".Nanoseconds()) }", test: "TestHopsOf"},
	{what: "p99.99 is the median", file: links, from: "at(0.9999)", to: "at(0.5)", test: "TestHopsOf"},
	{what: "p99 is the maximum", file: links, from: "at(0.99)", to: "at(1)", test: "TestHopsOf"},
	{what: "waiting at the head of a line is 0", file: links, from: "float64(after.Blocked-before.Blocked) /", to: "0 /", test: "TestRatesOf"},
	{what: "waiting at the head of a line since the start", file: links, from: "float64(after.Blocked-before.Blocked) /", to: "float64(after.Blocked) /", test: "TestRatesOf"},
	{what: "packets a second are bytes a second", file: links, from: "PacketsPerSec: float64(after.Came-before.Came)", to: "PacketsPerSec: float64(after.Bytes-before.Bytes)", test: "TestRatesOf"},

	{what: "CPU columns of curves are 0", file: stack + "report.go", from: "CPUSPerGB: stat.Summarise(t.cpu[d]).P50", to: "CPUSPerGB: 0 * stat.Summarise(t.cpu[d]).P50", test: stackTests},
	{what: "CPU columns of C beside Go are 0", file: stack + "beside.go", from: "1e9 * slices.Min(ours.cpu[d]), 1e9 * slices.Min(theirs.cpu[d]),", to: "0, 0,", test: stackTests},
	{what: "CPU time of both directions is h2d's", file: stack + "report.go", from: "CPUSPerGB: stat.Summarise(t.cpu[d])", to: "CPUSPerGB: stat.Summarise(t.cpu[0])", test: stackTests},
	{what: "the theory copies twice", file: stack + "report.go", from: "(call + copied)", to: "(call + 2*copied)", test: stackTests},
	{what: "the theory has no call", file: stack + "report.go", from: "float64(n) / (call + copied)", to: "float64(n) / copied", test: stackTests},
	{what: "the slides' figure for 8 KiB", file: stack + "report.go", from: "{8, 50, 70, 72}", to: "{8, 60, 70, 72}", test: stackTests},
	{what: "half of the rate at any size is the same", file: stack + "report.go", from: "half >= 128 && half <= 512", to: "half >= 0", test: stackTests},
	{what: "software always takes less than 5 %", file: stack + "report.go", from: "below > 0 && below <= 256<<10", to: "below >= 0", test: stackTests},
	{what: "overlapping always wins", file: stack + "report.go", from: "best.mean > stackGains", to: "best.mean > 0", test: stackTests},
	{what: "data are always wrong without flow control", file: stack + "report.go", from: "amount && wrong > 0,\n", to: "amount && chunks > 0,\n", test: stackTests},
	{what: "the amount is always right", file: stack + "report.go", from: "amount = amount && l.Came == l.Chunks", to: "amount = amount && l.Came > 0", test: stackTests},
	{what: "chunks that were sent are chunks that came", file: stack + "device/overrun.c", from: "f.chunks = came(s, r.buffers)", to: "f.chunks = r.chunks", test: "TestOverrunFinds", in: stack},
	{what: "a gain is its inverse", file: stack + "gain.go", from: "one / seconds(t.futures)", to: "seconds(t.futures) / one", test: stackTests},
	{what: "the split chosen has no room for a round trip", file: stack + "budget.go", from: "float64(s.Chunk)+half <= float64(b.Bytes)", to: "float64(s.Chunk) <= float64(b.Bytes)", test: stackTests},
	{what: "any split is as good as the best", file: stack + "budget.go", from: ">= budgetNear*b.best()", to: ">= 0*b.best()", test: stackTests},
	{what: "a window of one for each split", file: stack + "budget.go", from: "splits[size*window], Split{size, window,", to: "splits[size*window], Split{size, 1,", test: stackTests},
	{what: "larger buffers always win", file: stack + "report.go", from: "large >= 2*small", to: "large >= 0", test: stackTests},
	{what: "packets of a page", file: stack + "waterfall.go", from: "papers.Packets(uint64(size), 0, cutPayload)", to: "papers.Packets(uint64(size), 0, 4096)", test: stackTests},
	{what: "the theory is what was measured", file: stack + "waterfall.go", from: "float64(p.Size) / p.TheoryGBs", to: "float64(p.Size) / p.GBs", test: stackTests},
	{what: "C and Go are exchanged", file: stack + "beside.go", from: "return (b.CNS - b.GoNS) / b.GoNS", to: "return (b.GoNS - b.CNS) / b.GoNS", test: stackTests},

	{what: "a ring of 24,988", file: hmf + "hmf.go", from: `"hackomat": 24989`, to: `"hackomat": 24988`, test: hmfTests},
	{what: "the row of six pairs", file: hmf + "commands.go", from: "4.234499, 154.3040276", to: "4.134499, 154.3040276", test: hmfTests},
	{what: "the first packet is a constant", file: hmf + "pair.go", from: "sent.FirstPacket = float64(now().Sub(start))", to: "sent.FirstPacket = 1000", test: hmfTests},
	{what: "the first package counts with the others", file: hmf + "pair.go", from: "		if p == 0 {\n", to: "		if p < 0 {\n", test: hmfTests},
	{what: "no deviation between pairs", file: hmf + "hmf.go", from: "s.SD*s.SD*float64(s.N-1) + off*off*float64(s.N)", to: "s.SD*s.SD*float64(s.N-1) + 0*off", test: hmfTests},
	{what: "the deviation of several pairs is 0", file: hmf + "hmf.go", from: "math.Sqrt(squares / float64(all.N-1))", to: "0 * math.Sqrt(squares)", test: hmfTests},
	{what: "net rates count whole packets", file: hmf + "hmf.go", from: "r.NetKiB = perSecond * float64(o.Payload)", to: "r.NetKiB = perSecond * float64(r.Packet)", test: hmfTests},
	{what: "the rate of one pair for several", file: hmf + "hmf.go", from: "float64(o.PerPackage*r.Pairs)", to: "float64(o.PerPackage)", test: hmfTests},
	{what: "the spread always grows faster", file: hmf + "commands.go", from: "relative(many)/relative(few)),", to: "2),", test: hmfTests},
	{what: "the ring's size never matters", file: hmf + "commands.go", from: "ratio, ratio < 1.5)", to: "ratio, ratio > 0)", test: hmfTests},

	{what: "hot buffers decide on transfers beside memcpy", file: peers + "sides.go", from: "range []string{compare.NameSendIndCold, compare.NameReceiveIndCold} {", to: "range []string{compare.NameSendInd, compare.NameReceiveInd} {", test: "TestBulkGoals"},
	{what: "a transfer is held against a hot memcpy", file: peers + "sides.go", from: "Value: t.Ratio(compare.NameMemcpyCold, name)", to: "Value: t.Ratio(compare.NameMemcpy, name)", test: "TestBulkGoals"},
	{what: "a rate is of one operation of a round", file: peers + "peers.go", from: "cli.GBs(c.Size*r.Ops, r.Timed)", to: "cli.GBs(c.Size, r.Timed)", test: "TestBulkGoals"},
	{what: "buffers in turn are one buffer", file: "bench/internal/compare/host.go", from: "copy(to[calls%len(to)], from[calls%len(from)])", to: "copy(to[0], from[0])", test: "TestColdBuffers"},
	{what: "transfers in turn are of one buffer", file: "bench/internal/compare/device.go", from: "ch.SendInd(ctx, buffers[calls%len(buffers)], size)", to: "ch.SendInd(ctx, buffers[0], size)", test: "TestColdTransfers"},
	{what: "staged memory is not copied", file: "bench/internal/compare/far.go", from: "ReadAt(f.bounce, 0)", to: "ReadAt(f.bounce[:0], 0)", test: "TestFar"},
	{what: "what takes a moment is measured on a quiet machine", file: "bench/internal/cli/machine.go", from: "	time.Sleep(leastWatch - time.Since(w.Start))\n", test: "TestMachineTimeGrows"},
	{what: "goals are reached on a busy machine", file: "bench/internal/cli/goals.go", from: "		if busy != \"\" && g.Measured() {", to: "		if busy == \"\" && g.Measured() {", test: "TestWithhold"},

	{what: "a tenth of 10 GB/s suffices", file: report + "_ring.go", from: "const ringTarget = 10", to: "const ringTarget = 1", test: reportTests},
	{what: "table 2 is the same from 0.1 to 100 times", file: report + "_bulk.go", from: "ratio.P50 >= 1.5 && ratio.P50 <= 2.5", to: "ratio.P50 >= 0.1 && ratio.P50 <= 100", test: reportTests},
	{what: "every curve is flat from 2 MB", file: report + "_bulk.go", from: "least > 0.8,", to: "least > -1,", test: reportTests},
	{what: "every rate is higher at 2 MB", file: report + "_bulk.go", from: "large > 1.5*few,", to: "large > 0,", test: reportTests},
	{what: "eight processes carry twice as much if they carry more", file: report + "_bulk.go", from: "many > 2*large, \"%.2f", to: "many > large, \"%.2f", test: reportTests},
	{what: "a busy machine decides on table 2", file: report + "_bulk.go", from: "			ratio.P50 >= 1.5 && ratio.P50 <= 2.5, \"%.2f times; less is better\", ratio.P50))\n	}\n	return trust(item, r.Busy)", to: "			ratio.P50 >= 1.5 && ratio.P50 <= 2.5, \"%.2f times; less is better\", ratio.P50))\n	}\n	return trust(item, \"\")", test: reportTests},
	{what: "the model line of figure 4 in GB/s", file: report + "_bulk.go", from: "number(8 * c.Hockney.RInf)", to: "number(c.Hockney.RInf)", test: reportTests},
	{what: "a packet of a larger ring never costs more", file: report + "_ring.go", from: "most < 1.1*each[0],", to: "most > 0,", test: reportTests},
	{what: "a ring that is made faster grows", file: report + "_ring.go", from: "slices.IsSorted(means) && ", to: "", test: reportTests},
	{what: "pairs that carry as much carry more", file: hmf + "commands.go", from: "ratio, ratio >= 1.1)", to: "ratio, ratio > 1)", test: hmfTests},
	{what: "gross rates in the place of net ones", file: report + "_ring.go", from: "Measured: number(here.NetKiB)", to: "Measured: number(here.GrossKiB)", test: reportTests},
	{what: "the classic flow control always agrees", file: report + "_link.go", from: "agrees < 0.05,", to: "agrees >= 0,", test: reportTests},
	{what: "a larger chunk is always faster", file: report + "_stack.go", from: "rises = rises && r.Near(stack.Sync, s.KiB<<10) > last", to: "rises = rises && last >= 0", test: reportTests},
	{what: "an overrun buffer is right", file: stack + "device/overrun.c", from: "wrong += !is_chunk", to: "wrong += 0 * is_chunk", test: "TestOverrunFinds", in: stack},
	{what: "a changed chunk is right", file: stack + "device/overrun.c", from: "word >> 32 == checksum", to: "word >> 32 >= 0 * checksum", test: "TestOverrunFinds", in: stack},
	{what: "wrong chunks are chunks", file: report + "_stack.go", from: "100 * float64(l.Wrong) / float64(l.Chunks)", to: "100 * float64(l.Chunks) / float64(l.Chunks)", test: reportTests},
	{what: "C less Go is Go less C", file: report + "_stack.go", from: "(b.CNS - b.GoNS) / 1e3", to: "(b.GoNS - b.CNS) / 1e3", test: reportTests},
	{what: "libnfcomms is the kernel module", file: report + "_stack.go", from: "r.Device.Driver != \"dev\"", to: "r.Device.Driver == \"\"", test: reportTests},
	{what: "an emulated card is hardware", file: "bridge/kind.go", from: "i.Board.Vendor == emulatorVendor:", to: "i.Board.Vendor == 0:", test: "TestKind"},
	{what: "a reason not to measure is a result", file: groups, from: "Shape: cli.ShapeUnknown, Why: r.Why()}", to: "Shape: cli.ShapeUnknown}", test: groupTests},
	{what: "findings of a group have no figure", file: report + ".go", from: "Result: f.Shape, Why: f.Why}", to: "Result: f.Shape}", test: reportTests},
	{what: "the algorithm of 2009 is beside itself", file: report + "_group.go", from: "\"send-loop\", name)", to: "\"send-loop\", \"send-loop\")", test: reportTests},

	{what: "p99 of a crowd is the median", file: crowd + "run.go", from: "at(50), at(99), at(99.9)", to: "at(50), at(50), at(99.9)", test: crowdTests},
	{what: "the rate of a crowd is of the last round", file: crowd + "run.go", from: "float64(sum)/wall.Seconds()", to: "float64(sum)", test: crowdTests},
	{what: "CPU time of a crowd is for each caller", file: crowd + "run.go", from: "float64(s.cpu) / float64(s.measured)", to: "float64(s.cpu) / float64(n)", test: crowdTests},
	{what: "the worst caller is the best", file: crowd + "run.go", from: "float64(slices.Min(s.ops))/mean", to: "float64(slices.Max(s.ops))/mean", test: crowdTests},
	{what: "a crowd is held against itself", file: crowd + "run.go", from: "stat.Pairwise(s.rates, s.reference)", to: "stat.Pairwise(s.rates, s.rates)", test: crowdTests},
	{what: "the goals of a quiet machine are a busy one's", file: crowd + "crowd.go", from: "if row.Load > 0 || r.Procs == 1 {", to: "if row.Load >= 0 || r.Procs == 1 {", test: crowdTests},
	{what: "many callers are held against themselves", file: crowd + "crowd.go", from: "row.Rate.Median / r.Rows[one].Rate.Median", to: "row.Rate.Median / row.Rate.Median", test: crowdTests},
	{what: "a crowd on a busy machine reaches its goals", file: crowd + "crowd.go", from: "cli.Withhold(goals, row.busy)", to: "cli.Withhold(goals, row.busy[:0])", test: crowdTests},
	{what: "channels on a busy machine reach their goals", file: scale + "scale.go", from: "cli.Withhold(goals, row.Busy)", to: "cli.Withhold(goals, row.Busy[:0])", test: scaleTests},
	{what: "the growth of memory is for all channels", file: scale + "scale.go", from: "(m.heap-before.heap)/float64(n)", to: "m.heap-before.heap", test: scaleTests},
	{what: "unknown memory is a channel's", file: scale + "scale.go", from: "		all = -1\n", to: "		all = 0\n", test: scaleTests},
	{what: "a million channels are within any bound", file: scale + "scale.go", from: "Value: row.Bytes, Target: 1024", to: "Value: 0 * row.Bytes, Target: 1024", test: scaleTests},
	{what: "p99 of a live channel is the median", file: scale + "scale.go", from: "units.Duration(row.Ns.P99), stat.Times", to: "units.Duration(row.Ns.P50), stat.Times", test: scaleTests},
	{what: "the clients' time is the device's", file: idle, from: "ClientsPercent: percent(clients)", to: "ClientsPercent: percent(device)", test: idleTests},
	{what: "idle time is a part, not percent", file: idle, from: "100 * float64(d)", to: "float64(d)", test: idleTests},
	{what: "only the device of 64 clients counts", file: idle, from: "Value: row.DevicePercent + row.ClientsPercent", to: "Value: row.DevicePercent", test: idleTests},
	{what: "a client has the time of all", file: idle, from: "percent(row.ClientsPercent/float64(row.Clients))", to: "percent(row.ClientsPercent)", test: idleTests},
	{what: "a step of a group is a batch of steps", file: groups, from: "c.Samples.Stat(c.Batch)", to: "c.Samples.Stat(1)", test: groupTests},
	{what: "the maximum of a step is its mean", file: groups, from: "fmt.Sprintf(\"%.1f\", row.Step.Max)", to: "fmt.Sprintf(\"%.1f\", row.Step.Mean)", test: groupTests},
	{what: "rounds of a group are nanoseconds", file: groups, from: "rounds[i] /= 1e3", to: "rounds[i] /= 1", test: groupTests},
	{what: "the rate of a group is a member's", file: groups, from: "float64(row.Members*row.Targets*row.Size)", to: "float64(row.Targets*row.Size)", test: groupTests},
	{what: "gathering never scales", file: groups, from: "stat.SpreadOf(growth), true", to: "stat.SpreadOf(many.ByRound), true", test: groupTests},
	{what: "rounds that disagree decide", file: groups, from: "ratio.Min <= 1 && ratio.Max > 1", to: "ratio.Min < 0", test: groupTests},
	{what: "large messages are small ones", file: groups, from: "most.Members, most.Size, \"isend-irecv\"", to: "least.Members, least.Size, \"isend-irecv\"", test: groupTests},
	{what: "auto is never beside another", file: groups, from: "ratio > c.CPU {", to: "ratio > 100 {", test: groupTests},

	{what: "the time of an exchange is 0", file: spikes + "report.go", from: "return s.Exchange - s.Waiting }", to: "return 0 }", test: spikeTests},
	{what: "the maximum is the mean", file: spikes + "report.go", from: "max(list[step].most, v)", to: "list[step].mean", test: spikeTests},
	{what: "waiting is not measured", file: spikes + "member.go", from: "micros(m.g.Stats().Waiting - before.Waiting)", to: "0 * micros(before.Waiting)", test: spikeTests},
	{what: "computing includes the exchange", file: spikes + "report.go", from: "return s.Total - s.Exchange }", to: "return s.Total }", test: spikeTests},
	{what: "spikes sent as spikes received", file: spikes + "report.go", from: `"in_spikes":  func(s sample) float64 { return float64(s.In) }`, to: `"in_spikes":  func(s sample) float64 { return float64(s.Out) }`, test: spikeTests},

	{what: "any formula is equal", file: model + "catalogue.go", from: "	case apart(f.Model) <= 0.5+accuracy:\n		return Equal", to: "	case apart(f.Model) <= 500+accuracy:\n		return Equal", test: modelTests},
	{what: "steps of ten are the last digit", file: model + "catalogue.go", from: "Published: row.b34, Model: LinkBandwidth(34, row.depth, 0) / 1e6, Step: 1,", to: "Published: row.b34, Model: LinkBandwidth(34, row.depth, 0) / 1e6, Step: 10,", test: modelTests},
	{what: "a printed figure is cut to three digits", file: "bench/internal/report/folder.go", from: "FormatFloat(*v, 'f', -1, 64)", to: "FormatFloat(*v, 'g', 3, 64)", test: reportTests},
	{what: "a formula's figure is rounded as the paper's", file: report + "_write.go", from: "math.Pow(10, 1+max", to: "math.Pow(10, max", test: reportTests},
	{what: "different is the same", file: report + "_bulk.go", from: "\"the formula gives another figure\", cli.ShapeDiffers", to: "\"the formula gives another figure\", cli.ShapeSame", test: reportTests},
	{what: "the link resumes at once", file: model + "linksim.go", from: " || s.last.held > s.c.Yellow {", to: " {", test: "TestYellow"},
	{what: "the link resumes with an empty FIFO only", file: model + "linksim.go", from: " || s.last.held > s.c.Yellow {", to: " || s.last.held > 0 {", test: "TestYellow"},
	{what: "words in the FIFO are forgotten at T_YEL", file: model + "linksim.go", from: "s.stopped, s.counted, s.resumed = -1, s.last.held,", to: "s.stopped, s.counted, s.resumed = -1, 0,", test: "TestNoOverflow"},
	{what: "a packet too many below T_RED", file: model + "link.go", from: "depth/PacketWords*PacketWords - PacketWords", to: "depth / PacketWords * PacketWords", test: modelTests},
	{what: "8b10b takes nothing", file: model + "link.go", from: `Encoding{"8b10b", 8, 10}`, to: `Encoding{"8b10b", 10, 10}`, test: modelTests},
	{what: "a packet on PCI Express without LCRC", file: model + "pcie.go", from: "n := 1 + 2 + 4*t.HeaderDW + 4 + 1", to: "n := 1 + 2 + 4*t.HeaderDW + 1", test: modelTests},
}

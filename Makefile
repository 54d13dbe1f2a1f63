# "make" lists the targets.
GO         ?= go
FUZZTIME   ?= 2s
SOAK       ?= 5m
MUTANTS    ?= 0
BENCH      ?= bin/bench
CLANG_FORMAT ?= clang-format-14
CFILES     := $(wildcard firmware/*.[ch] firmware/*/*.[ch] examples/*/*/*.[ch] apps/*/*/*.[ch] kmod/*.[ch] kmod/uapi/*.h kmod/core/*.[ch] kmod/lib/*.[ch] kmod/lib/*/*.[ch] kmod/test/*.[ch] internal/vmtest/c/*.[ch] internal/vmtest/c/*/*_test.c bench/*/*/*/*.[ch] kubernetes/*/*/*/*/*.[ch])
# Modules of their own, and the packages of all modules: go.work joins them.
MODULES     = apps bench kubernetes pkg/telemetry
ALL         = ./... $(MODULES:%=./%/...)
# A tool is built by tools/go.mod, and finds the packages by go.work.
STATICCHECK = $$(GOWORK=off $(GO) tool -modfile=tools/go.mod -n staticcheck)
RUNNER      = bin/testrun -skips .ci/skips
# Suites of "make test" that run at the same time.
LANES      ?= $(shell [ "$$(nproc)" -gt 1 ] && echo 2 || echo 1)
# make lint vets all packages, with every analyzer: go test need not do it once more.
GOTEST      = $(GO) test -vet=off -race -count=1 -timeout 30m
# Where no goroutine starts the race detector finds nothing, and takes three times as long. Such packages
# run without it, as do those that walk tables, and import what they do not run. make lint runs internal/lint.
WALKS       = ./internal/proto ./internal/mutants
PACKAGES    = $(GOTEST) -json \$$(scripts/goroutines.sh some $(ALL) | grep -vE '/($(subst $() ,|,$(WALKS:./%=%)))$$')
# The race detector bounds goroutines, hides allocations, lays memory out in its own
# way and makes all slower: what counts those or finds the stack, and what is large, runs
# without it. The module that dev: runs over here is a fake: only what differs in size.
FULLTEST    = $(GO) test -vet=off -count=1 -timeout 30m -json
FULL        = $(FULLTEST) $(WALKS) \$$(scripts/goroutines.sh none $(ALL)) && \
	$(FULLTEST) -run 'Alloc|BytesOf|Stack|Pages|TakeBuffer|Memory' ./bridge/mailbox ./pkg/nfcomms && \
	$(FULLTEST) -run 'TestConformance$$|TestSoak|TestChaos|TestMillion' ./internal/sim && \
	$(FULLTEST) -run 'TestConformance(Of|One|Four)/(crowd|huge|ledger|stats)' ./internal/sim && \
	$(FULLTEST) -run 'TestConformance/(crowd|huge|stats)' ./internal/kdev && \
	$(FULLTEST) -run TestNoAllocation ./pkg/group/...
# Compiles packages and programs and links none: go build links each program that it is given.
COMPILE     = list -export -f '{{/**/}}'
# For another processor: everything is compiled, what is installed is linked, and run what depends on it, emulated.
ARM64       = CGO_ENABLED=1 GOARCH=arm64 CC=aarch64-linux-gnu-gcc $(GO)
ARM64TEST   = $(ARM64) test -vet=off -count=1 -timeout 10m -exec 'qemu-aarch64 -L /usr/aarch64-linux-gnu' -json
ARM64SIM    = TestShapes|TestServices|TestSilentDevice$$|TestSinkVerifies|TestBadMemory|TestRoundsRepeat
ARM64SUITES = "step arm64-build: $(ARM64) $(COMPILE) $(ALL) && $(ARM64) build -o /dev/null ./cmd/... ./kmod/lib/umod" \
	"sum arm64-firmware: $(MAKE) -C firmware/test arm64" \
	"go arm64: $(ARM64TEST) ./bridge/abi ./internal/wire && $(ARM64TEST) -run '$(ARM64SIM)' ./internal/sim"

MAKEFLAGS += --no-print-directory
export FUZZTIME
# A clone in any folder finds what one in another folder compiled: a package's folder is not a part of it.
# Tests that read the standard library's sources find them by GOROOT, which is in no program then.
check test test-go: export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath
check test test-go: export GOROOT := $(shell $(GO) env GOROOT)
# A test that needs a compiler fails without one instead of skipping.
export NFC_REQUIRE_GCC = 1
# The race detector waits a second at the end of each process, and tests run
# hundreds of them. What it finds is reported when it happens.
export GORACE = atexit_sleep_ms=0

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: deps-build ## move over 1 GiB of files to a device and back, verified
	@$(GO) run ./apps/bulk --demo

.PHONY: demo-service
demo-service: deps-build ## a service under load, scraped by a real Prometheus, shown by nfctl and as a picture of the dashboard
	@scripts/prometheus.sh >/dev/null
	@$(GO) run ./apps/dashboard

.PHONY: demo-fabric
demo-fabric: deps-build ## a torus of 16 nodes, then of four processes, whose links are cut and mended under load
	@$(GO) run ./apps/torus

.PHONY: demo-shm
demo-shm: deps-build ## two processes move bulk data through a device in a third, verified; one is killed, the other does not notice
	@$(GO) run ./apps/shared

.PHONY: test
test: deps deps-vm bin/testrun bin/vmtest ## every check and test; ends with "N passed, N failed, N skipped"
	@$(RUNNER) -proofs docs/semantics.md -lanes $(LANES) \
		"go packages: $(PACKAGES)" \
		"go vm: bin/vmtest run" \
		"sum lint: $(MAKE) lint" \
		"sum firmware: $(MAKE) test-c" \
		"sum kmod: $(MAKE) test-kmod" \
		"go full-size: $(FULL)" \
		"sum debian: $(MAKE) test-packages" \
		"sum fuzz: $(MAKE) fuzz-smoke" \
		$(ARM64SUITES) \
		$(if $(DEMO),"step demo: $(MAKE) demo")

# What the inner loop runs of the Go tests, the longest first, and what takes longest and is left out.
CHECK       = ./internal/sim ./pkg/... ./internal/proto/... ./bridge ./bridge/abi ./bridge/mailbox ./internal/wire ./internal/waiter \
	./internal/meter ./internal/logqueue ./firmware ./internal/lint
CHECKSKIP   = TestConformance/huge|TestSeeded|TestWalk|Computes|TestStopIsBounded|TestDeviceWritesOnlyToItsLog

.PHONY: check
check: deps-build bin/testrun ## in the time of a coffee: format, rules, vet, the last release, units, conformance on sim:
	@$(RUNNER) -lanes $(LANES) "go units: $(GO) test -vet=off -short -count=1 -p 4 -json -skip '$(CHECKSKIP)' $(CHECK)" \
		"step gofmt: $(MAKE) lint-gofmt" "step vet: $(MAKE) lint-vet" "step compatible: scripts/compatible.sh"

.PHONY: test-go
test-go: deps-build bin/testrun ## the Go tests alone, with the race detector and at full size
	@$(RUNNER) -proofs docs/semantics.md "go packages: $(PACKAGES)" "go full-size: $(FULL)"

.PHONY: test-c
test-c: deps ## the C tests of firmware and library, sanitizers and freestanding builds
	@$(MAKE) -C firmware/test check
	@$(MAKE) -C kmod/lib check

.PHONY: test-arm
test-arm: deps bin/testrun ## the tree for arm64: built, and its core, ABI and simulated device run, emulated
	@$(RUNNER) $(ARM64SUITES)

.PHONY: test-kmod
test-kmod: deps deps-vm ## the kernel module without a machine: its pure part in user space, sparse, checkpatch, W=1
	@$(MAKE) -C kmod check

.PHONY: vm-test
vm-test: deps-vm bin/testrun bin/vmtest ## the kernel module in virtual machines
	@$(RUNNER) "go vm: bin/vmtest run $(JOBS)"

.PHONY: vm-test-debug
vm-test-debug: deps-vm-debug bin/testrun bin/vmtest ## the same under a debug kernel (KERNEL=newer: that of the next release), with coverage; builds that kernel once
	@$(RUNNER) "go vm-debug: bin/vmtest run -group debug -kernel $(or $(KERNEL),debug) $(JOBS)"

.PHONY: vm-races
vm-races: deps-vm-debug bin/testrun bin/vmtest ## the kernel module under KCSAN, which finds accesses without an order; builds that kernel once
	@$(RUNNER) "go vm-races: bin/vmtest run -group races"

.PHONY: vm-arm
vm-arm: deps-vm-arm bin/testrun bin/vmtest ## the kernel module on another processor, in a virtual machine
	@$(RUNNER) "go vm-arm: bin/vmtest run -group arm64 $(JOBS)"

.PHONY: vm-defects
vm-defects: deps-vm-debug bin/testrun bin/vmtest ## seed defects in the kernel module, each of which a run must catch
	@$(RUNNER) "go vm-defects: bin/vmtest run -group defect $(JOBS)"

.PHONY: vm-demo
vm-demo: deps-vm bin/vmtest ## the demo's transfers through the kernel module, in a virtual machine
	@bin/vmtest demo $(VMFLAGS)

.PHONY: vm
vm: deps-vm bin/vmtest ## a shell in a virtual machine with the module loaded
	@bin/vmtest shell $(VMFLAGS)

.PHONY: spec
spec: deps ## search the models of the protocol; their broken variants must be refuted, with charts in spec/charts
	@rm -f spec/charts/*.txt
	@$(GO) test -count=1 -run TestCrowd ./spec/internal/refine -args -channels 3 -slots 1
	@$(GO) run ./spec/speccheck -charts spec/charts

.PHONY: soak
soak: deps-build ## abuse the daemon on all its listeners for SOAK (5m) each way, with limits for latency, memory and processor time
	@$(GO) test -count=1 -timeout 6h -v -run 'Soak|Killed' ./cmd/nfcommsd -soak $(SOAK)

.PHONY: fuzz-smoke
fuzz-smoke: deps ## every fuzz target for FUZZTIME (2s) each
	@scripts/fuzz-smoke.sh

.PHONY: package
package: deps-build ## build the Debian packages in bin/: daemon and tools, library, kernel module
	@deploy/debian/build.sh bin
	@deploy/dkms/build.sh bin

.PHONY: image
image: deps-build ## build the container image in bin/
	@deploy/container/build.sh bin

.PHONY: release
release: deps ## a release of VERSION (v1.2.3) in bin/VERSION: apt repository, rpm packages, image, materials, checksums; KEY signs
	@scripts/deps.sh packages
	@scripts/release.sh $(VERSION)

.PHONY: test-packages
test-packages: deps-build ## the packages in a booted Debian, the image in a container, the module as DKMS builds it
	@scripts/deps.sh packages
	@deploy/debian/check.sh bin/packages
	@deploy/container/check.sh bin/packages
	@deploy/dkms/check.sh

.PHONY: test-kubernetes
test-kubernetes: deps-build bin/testrun ## nfplugin under the kubelet's own device manager, and the manifests on a control plane of Kubernetes, which are built the first time
	@scripts/deps.sh kubernetes
	@$(RUNNER) "go kubernetes: cd test/kubernetes && GOWORK=off $(GO) test -vet=off -count=1 -timeout 20m -json ./..." \
		"go kubernetes/dra: cd kubernetes/dra && GOWORK=off $(GO) test -count=1 -timeout 5m -json ./..."

.PHONY: test-telemetry
test-telemetry: deps-build bin/testrun ## spans and exemplars at the collector of OpenTelemetry, which is built from its modules the first time
	@$(RUNNER) "go telemetry: cd test/telemetry && GOWORK=off $(GO) test -count=1 -timeout 20m -json ./..."

.PHONY: licenses
licenses: deps-build ## write the licences of all that the programs link
	@scripts/licenses.sh

.PHONY: bench
bench: deps-build ## every measurement with its pictures into BENCH (bin/bench), then every goal: reached, missed by how much, or not measured; BENCHFLAGS=--short for a look
	@mkdir -p $(BENCH)
	$(GO) test -run '^$$' -bench . -benchmem ./bridge/... ./pkg/... >$(BENCH)/benchmarks.txt
	$(GO) run ./bench/nfbench all --out $(BENCH) $(BENCHFLAGS)

.PHONY: mutants
mutants: deps ## change the code of the protocol in one place at a time, each of which a test must notice; MUTANTS=10: ten of them, others each day
	@$(GO) run ./internal/mutants --places --slice $(MUTANTS)

.PHONY: mutants-reports
mutants-reports: deps-build ## seed mistakes in the code of the reports, one at a time, each of which a test must find
	@$(GO) run ./internal/mutants

.PHONY: build
build: deps-build ## build everything; the commands go to bin/
	$(GO) build $(ALL)
	$(GO) build -o bin/ ./cmd/... ./bench/...

.PHONY: man
man: deps-build ## the manual pages of nfctl go to bin/man/
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(GO) run ./cmd/nfctl man bin/man

.PHONY: fmt
fmt: deps ## format the Go and C sources
	gofmt -w .
	$(CLANG_FORMAT) -i $(CFILES)

# The linters, in the order of their cost. All run, also after a failure.
LINTERS = lint-gofmt lint-c lint-rules lint-vet lint-nocgo lint-static lint-tidy lint-proto lint-commits

.PHONY: lint
lint: deps ## every linter
	@passed=0; failed=0; for l in $(LINTERS); do \
		if $(MAKE) $$l; then passed=$$((passed + 1)); \
		else failed=$$((failed + 1)); echo "FAIL: make $$l"; fi; \
	done; echo "$$passed passed, $$failed failed"; [ $$failed -eq 0 ]

.PHONY: $(LINTERS)
lint-gofmt: ## Go sources are formatted
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "not formatted: $$files"; exit 1; }

lint-c: ## C sources are formatted
	@$(CLANG_FORMAT) --dry-run -Werror $(CFILES)

lint-rules: ## the project's own rules: imports, comments, sizes, documents
	@$(GO) test -count=1 ./internal/lint

lint-vet: ## go vet
	@$(GO) vet $(ALL)

lint-nocgo: ## the tree compiles and vets without a C compiler, and what needs no Linux without that
	@CGO_ENABLED=0 $(GO) $(COMPILE) $(ALL) && CGO_ENABLED=0 $(GO) build -buildvcs=false -o /dev/null ./cmd/... && \
		CGO_ENABLED=0 $(GO) vet $(ALL) && \
		GOOS=darwin CGO_ENABLED=0 $(GO) vet ./bench/... ./cmd/nfctl && \
		for os in darwin freebsd windows; do \
			GOOS=$$os CGO_ENABLED=0 $(GO) build ./pkg/... && \
			GOOS=$$os CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/nfctl && \
			GOOS=$$os CGO_ENABLED=0 $(GO) vet ./bridge/... || exit 1; \
		done && \
		GOOS=windows CGO_ENABLED=0 $(GO) vet $$(GOOS=windows CGO_ENABLED=0 $(GO) list -deps \
			-f '{{with .Module}}{{if .Main}}{{$$.ImportPath}}{{end}}{{end}}' ./cmd/nfctl)

lint-static: ## staticcheck
	@$(STATICCHECK) $(ALL)

lint-tidy: ## go.mod and go.sum of each module hold what is needed and no more
	@scripts/tidy.sh check $(MODULES)

lint-proto: ## protos: lint, generated code, compatibility with the last commits
	@scripts/proto.sh check

lint-commits: ## messages of new commits
	@scripts/commit-msg.sh --new

.PHONY: tidy
tidy: deps-build ## write the go.mod and go.sum of each module
	@scripts/tidy.sh write $(MODULES)

.PHONY: proto
proto: deps-build ## format the protos and generate their Go code
	@scripts/proto.sh generate

.PHONY: deps
deps: ## install the tools the tests need, or say which are missing
	@scripts/deps.sh test

.PHONY: deps-build
deps-build:
	@scripts/deps.sh build

.PHONY: deps-vm deps-vm-debug deps-vm-arm
deps-vm:
	@scripts/deps.sh vm

deps-vm-debug:
	@scripts/deps.sh vm-debug

deps-vm-arm:
	@scripts/deps.sh vm-arm

.PHONY: bin/vmtest
bin/vmtest:
	@CGO_ENABLED=0 $(GO) build -buildvcs=false -o bin/vmtest ./internal/vmtest

.PHONY: bin/testrun
bin/testrun:
	@$(GO) build -buildvcs=false -o bin/testrun ./internal/testrun

.PHONY: clean
clean: ## remove what make built
	rm -rf bin
	@$(MAKE) -C firmware/test clean
	@$(MAKE) -C kmod/lib clean
	@$(MAKE) -C kmod clean

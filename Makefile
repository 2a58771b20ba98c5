# Targets of vksplat; "make help" lists them. Needed beforehand: Go, git, make. The
# rest is installed through apt where it is missing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# staticcheck is fetched by its exact version and stays out of go.mod.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
# What judges jobs exported for Kubernetes; as staticcheck.
KUBECTL_VALIDATE := sigs.k8s.io/kubectl-validate@v0.0.4
# The second Vulkan binding (see vk/) is a build tag.
SECOND := vulkango
# Subgroup sizes 4, 8 and 16 of software Vulkan, in bits of its vectors.
WIDTHS := 128 256 512
# The software driver, for runs that must not pick a GPU.
SOFTWARE = VK_DRIVER_FILES=$(firstword $(wildcard $(addsuffix /vulkan/icd.d/lvp_icd*.json,/usr/share /etc)))
# Outputs; git ignores both.
BIN := bin
OUT := build
# A short run, small enough to repeat in many settings.
SHORT := demo --images 12 --iterations 50
# One that reaches refinement, which begins after step 500.
REFINED := demo --images 12 --iterations 650
FUZZ_TIME := 5000x
# Without this bound, fuzzing spends its time on making inputs smaller: up to a minute each.
FUZZ_SMALLER := 10x
VALIDATE := VKSPLAT_VALIDATE=1
# The commit, for version, stats.json and bench; Go records none in some checkouts.
REVISION = $(shell git describe --always --dirty=+dirty --abbrev=12 --exclude='*' 2>/dev/null)
WINDOWS := GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc
# Full sizes in tests that are smaller otherwise, and where tools/kernelstat/mesa.sh put a newer Mesa.
LONG := VKSPLAT_LONG=1 VKSPLAT_MESA="$(CURDIR)/$(OUT)/mesa"
# Python with what reads our files, in front of others for the tests, once python-env has made it. VKSPLAT_PACKAGES=1
# says that it is complete: tests that need it fail where they would be skipped.
PYTHON := $(OUT)/python
HAS_PYTHON = test -e $(PYTHON)/made-from.txt
WITH_PYTHON = PATH="$$($(HAS_PYTHON) && echo "$(CURDIR)/$(PYTHON)/bin:")$$PATH" \
  VKSPLAT_PACKAGES=$$($(HAS_PYTHON) && echo 1)
# The same with what judges jobs for Kubernetes, and Slurm. VKSPLAT_SCHEDULERS=1 says that both are there, as
# VKSPLAT_PACKAGES does of packages.
SCHEDULERS := $(OUT)/schedulers
WITH_ALL = $(WITH_PYTHON) PATH="$(CURDIR)/$(SCHEDULERS):$$PATH" VKSPLAT_SCHEDULERS=1

.PHONY: help demo bench build farmd test-farmd release try-release windows macos docs kernels quick test \
  test-all test-long check vet staticcheck others gen messages tests python-env schedulers second-binding \
  same-bindings widths fuzz same-bytes twice golden clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	  awk -F '\t' '{printf "  %-15s %s\n", $$1, $$2}'

demo: ## train a made-up scene, on software Vulkan where there is no GPU (a minute)
	@.ci/install demo
	@$(MAKE) --no-print-directory build
	@# Ctrl-C, which it says enough of, is no error
	$(BIN)/vksplat demo -m vksplat-demo --min-psnr 25 || [ $$? = 130 ]

bench: ## measure training steps of made-up models, to build/bench.json; BENCH=... for more flags
	@.ci/install demo
	@$(MAKE) --no-print-directory build
	@mkdir -p $(OUT)
	$(BIN)/vksplat bench --overwrite --json $(OUT)/bench.json $(BENCH)

build: ## build bin/vksplat
	go build -ldflags "-X vksplat/internal/cli.revision=$(REVISION)" -o $(BIN)/vksplat ./cmd/vksplat

farmd: ## build bin/vksplat-farmd, the server of a farm (the first time takes ten minutes)
	cd farmd && go build -ldflags "-s -w -X vksplat/internal/cli.revision=$(REVISION)" \
	  -o ../$(BIN)/vksplat-farmd .

test-farmd: ## tests of vksplat-farmd; VKSPLAT_LONG=1 for those that take longer, too
	@$(MAKE) --no-print-directory farmd
	cd farmd && go vet ./... && VKSPLAT_FARMD="$(CURDIR)/$(BIN)/vksplat-farmd" go test -p 1 -count=1 -timeout 120m ./...

release: ## make the downloads in bin/release: archives, .deb, container image, checksums (docs/release.md)
	@.ci/install release
	@.ci/zig $(OUT)/zig
	@rm -rf $(BIN)/release
	go run ./tools/release -zig $(OUT)/zig -o $(BIN)/release

try-release: ## install what release made in fresh Debians, run it on amd64 and arm64, make it again and compare
	@.ci/install try
	@.ci/try-release $(BIN)/release
	@.ci/zig $(OUT)/zig
	@rm -rf $(OUT)/again
	GOCACHE="$(CURDIR)/$(OUT)/again-cache" go run ./tools/release -zig $(OUT)/zig -o $(OUT)/again
	cmp $(BIN)/release/SHA256SUMS $(OUT)/again/SHA256SUMS

windows: ## build bin/vksplat.exe for Windows on x86-64 by mingw-w64
	@.ci/install windows
	$(WINDOWS) go build -o $(BIN)/vksplat.exe ./cmd/vksplat
	$(WINDOWS) go vet $$(go list ./... | grep -v /tools/)

macos: ## vet for macOS by zig's C compiler; to link a program takes Apple's frameworks (docs/install.md)
	@.ci/install python
	@.ci/zig $(OUT)/zig
	@ln -sf cc $(OUT)/zig/cc-aarch64-macos
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=1 CC="$(CURDIR)/$(OUT)/zig/cc-aarch64-macos" go vet \
	  $$(go list ./... | grep -v /tools/)
	@rm -f ./-.o # which zig leaves behind

docs: ## write the pages and the schema that are made from tables in the code
	go test -count=1 ./cmd/vksplat -run 'TestTrainPage|TestRenderPage|TestFarmSettings|TestFarmPage' -update
	go test -count=1 ./farm/spec -run TestSchemaIsMade -update
	go test -count=1 ./farm/task -run TestCommandLines -update
	go test -count=1 ./pipeline -run TestPassTable -update

kernels: ## compile the kernels for other GPUs, by compilers that it downloads, into bench/kernels.md
	tools/kernelstat/mesa.sh $(OUT)/mesa
	go run ./tools/kernelstat -mesa $(OUT)/mesa > $(OUT)/kernels.md
	cp $(OUT)/kernels.md bench

quick: ## a verdict on a change in a minute or two, after the first build
	@.ci/install demo
	@.ci/quick

# What vet compiles is there for the others: two that begin at once with an empty cache would compile it twice.
test: ## everything that CI runs: tests whose inputs changed since they passed; says at its end what was skipped
	@.ci/install test
	@$(MAKE) --no-print-directory -j2 --output-sync=target vet python-env
	@$(MAKE) --no-print-directory staticcheck others tests

test-all: ## test, whatever has changed; records in .ci/ledger.txt what passed, to be committed
	@.ci/install test
	@$(MAKE) --no-print-directory -j2 --output-sync=target vet python-env
	@$(MAKE) --no-print-directory staticcheck others
	$(WITH_PYTHON) go run ./tools/testrun -all

test-long: ## what takes longer: subgroup sizes, the second binding, fuzzing, repeated runs
	@.ci/install long
	@$(MAKE) --no-print-directory check windows macos widths python-env schedulers
	$(WINDOWS) go build -tags $(SECOND) -o $(BIN)/vksplat-second.exe ./cmd/vksplat
	tools/kernelstat/mesa.sh $(OUT)/mesa
	$(WITH_ALL) $(LONG) $(VALIDATE) go test -count=1 -timeout 120m ./...
	$(VALIDATE) go test -count=1 -timeout 120m -tags $(SECOND) ./vk/... ./pipeline/...
	$(LONG) $(MAKE) --no-print-directory test-farmd
	@$(MAKE) --no-print-directory fuzz same-bindings same-bytes

check: vet staticcheck others ## formatting, vet, staticcheck, types elsewhere, shaders, rules of the architecture
	$(WITH_PYTHON) go test -vet=off ./tools/...

others: ## types on other systems, committed shaders
	@.ci/install shaders
	go run ./tools/crosscheck windows/amd64 darwin/arm64
	go run ./tools/shadergen -check

vet:
	@list=$$(gofmt -l .); if [ -n "$$list" ]; then echo "gofmt would change:"; echo "$$list"; exit 1; fi
	go vet ./...
	go vet -tags $(SECOND) ./vk/...

staticcheck:
	go run $(STATICCHECK) ./...
	go run $(STATICCHECK) -tags $(SECOND) ./vk/...

gen: ## compile the shaders again and print their Go
	@.ci/install shaders
	go run ./tools/shadergen
	go test -count=1 ./vk -run TestSecondBinding -update

messages: ## write the Go of farm/wire/wire.proto
	@.ci/install messages
	GOBIN="$(CURDIR)/$(OUT)/tools" go install google.golang.org/protobuf/cmd/protoc-gen-go
	protoc --plugin=$(OUT)/tools/protoc-gen-go --go_out=. --go_opt=paths=source_relative farm/wire/wire.proto
	mv farm/wire/wire.pb.go farm/wire/wire_gen.go

tests: ## tests whose inputs changed since they passed, with the validation layer watching
	@.ci/install tests
	$(WITH_PYTHON) go run ./tools/testrun

python-env: ## build/python: the Python packages that some tests read our files with
	@.ci/install python
	@.ci/python $(PYTHON)

schedulers: ## build/schedulers: the program that judges jobs for Kubernetes (minutes to build)
	GOBIN="$(CURDIR)/$(SCHEDULERS)" GOFLAGS= go install $(KUBECTL_VALIDATE)

second-binding: ## tests of vk with the second Vulkan binding
	@.ci/install tests
	$(VALIDATE) go test -count=1 -timeout 30m -tags $(SECOND) ./vk/...

same-bindings: build ## equal models: 50 steps with either Vulkan binding
	go build -tags $(SECOND) -o $(BIN)/vksplat-second ./cmd/vksplat
	@rm -rf $(OUT)/bindings && mkdir -p $(OUT)/bindings
	$(BIN)/vksplat $(SHORT) -m $(OUT)/bindings/first
	$(BIN)/vksplat-second $(SHORT) -m $(OUT)/bindings/second
	@.ci/same-model $(OUT)/bindings/first $(OUT)/bindings/second

widths: ## kernel tests with subgroups of 4 and 16 on software Vulkan, which has 8 by itself
	@for w in $(filter-out 256,$(WIDTHS)); do echo "LP_NATIVE_VECTOR_WIDTH=$$w"; \
	  $(SOFTWARE) LP_NATIVE_VECTOR_WIDTH=$$w $(VALIDATE) go test -count=1 -timeout 60m ./vk/... ./pipeline/...; done

fuzz: ## every fuzz target with FUZZ_TIME inputs, as in 5000x, or for so long, as in 1m
	@go list ./... | while read -r p; do go test -list '^Fuzz' "$$p" | { grep '^Fuzz' || true; } | while read -r f; do \
	  echo "$$p $$f"; \
	  go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime $(FUZZ_SMALLER) "$$p"; done; done

same-bytes: build ## equal models: demo twice, VKSPLAT_SERIAL=1, every subgroup size
	@rm -rf $(OUT)/same && mkdir -p $(OUT)/same
	$(BIN)/vksplat demo -m $(OUT)/same/demo1 --min-psnr 25
	$(BIN)/vksplat demo -m $(OUT)/same/demo2 --min-psnr 25
	@.ci/same-model $(OUT)/same/demo1 $(OUT)/same/demo2
	$(BIN)/vksplat $(REFINED) -m $(OUT)/same/normal
	VKSPLAT_SERIAL=1 $(BIN)/vksplat $(REFINED) -m $(OUT)/same/serial
	@.ci/same-model $(OUT)/same/normal $(OUT)/same/serial
	@for w in $(WIDTHS); do echo "LP_NATIVE_VECTOR_WIDTH=$$w"; \
	  $(SOFTWARE) LP_NATIVE_VECTOR_WIDTH=$$w $(BIN)/vksplat $(REFINED) -m $(OUT)/same/width$$w; \
	  .ci/same-model $(OUT)/same/width$(firstword $(WIDTHS)) $(OUT)/same/width$$w; \
	  $(SOFTWARE) LP_NATIVE_VECTOR_WIDTH=$$w VKSPLAT_LANES=gpu $(BIN)/vksplat $(REFINED) -m $(OUT)/same/lanes$$w; \
	  .ci/same-model $(OUT)/same/lanes$(firstword $(WIDTHS)) $(OUT)/same/lanes$$w; done

twice: build ## train SCENE=folder twice with --eval ARGS=..., compare the bytes, print stats.json
	@test -n "$(SCENE)" || { echo "as in: make twice SCENE=path/to/capture"; exit 2; }
	@rm -rf $(OUT)/twice
	$(BIN)/vksplat train $(SCENE) -m $(OUT)/twice/first --eval $(ARGS)
	$(BIN)/vksplat train $(SCENE) -m $(OUT)/twice/second --eval $(ARGS)
	@.ci/same-model $(OUT)/twice/first $(OUT)/twice/second
	@cat $(OUT)/twice/first/stats.json

golden: ## kernels and training against the reference vectors; GOLDEN_DIR=folder for others
	go test -count=1 -v ./pipeline -run Golden

clean: ## remove what was built
	rm -rf $(BIN) $(OUT) vksplat-demo

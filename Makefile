# Everything a developer or CI runs. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: build test test-all test-long corpora raced conformance clients oracles lint cross wine race fuzz gosdk bench pictures docs site run dist dist-check dist-test check clean help

GO          ?= go
EXE         := $(if $(filter Windows_NT,$(OS)),.exe,)
TOOLS       := $(notdir $(patsubst %/main.go,%,$(wildcard tools/*/main.go)))
BINARIES    := $(addprefix bin/mcp-,$(addsuffix $(EXE),$(TOOLS) host))
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
FUZZTIME    ?= 10s
ROOT        ?= .
# Tests and checks are compiled as the binaries are, so that what is compiled for one
# serves the others. Only the race detector needs cgo.
PLAIN       := CGO_ENABLED=0 GOFLAGS="$$($(GO) env GOFLAGS) -trimpath"
# Without the tests of the repository itself, which have one goroutine and look at every
# file, and those of host/internal/store/jetstream, for which a whole server would be compiled once
# more with the race detector; what they share with the other stores' runs with it there,
# all of it in `make race`.
RACED       = $$($(GO) list -tags oracle ./... | grep -e toolroom/ | grep -v -e /host/internal/store/jetstream -e /bench/conformance -e /bench/clients)
# SQLite, translated from C, has memory of its own, which the race detector does not
# look at: compiling that for it, or optimized, would take as long as all of ours. What
# calls it is looked at.
FOREIGN     := -gcflags='modernc.org/sqlite/lib=-race=false -N -l' -gcflags='modernc.org/libc=-race=false -N -l'

# Long tests, of which make test runs a sixth of the cases (sandboxtest.InSample).
CORPORA     := TestAHardLinkThatIsMovedAllTheTime TestAccessListsAsAPlainUser TestAppliedIsAsKept TestAsAPlainUser TestConfinementAsAPlainUser TestDirectoryIsReplacedByALinkAtRandom \
	TestDiscardIsKilledAtRandom TestEverydayGit TestHardLinksOfEarlierCommands TestHostileServerAsAPlainUser TestKilledAtRandom \
	TestLargeProgramsAreSetAside TestMasksAsAPlainUser TestMemoryHogs TestNothingPlantedRuns TestOverlappingRootsShareTheBaseline \
	TestRandomConflicts TestRandomMoves TestRandomRepositories TestRandomSequences TestReplacedByALinkAtRandom TestRepositoriesMadeByCommands \
	TestRepositoriesOutsideTheRoot TestSettingsOfCompanions TestSourcedFilesAreRestored TestTheWholeDiskAsRoot \
	TestUsersOwnSettingsStayInOverlappingRoots TestVariantsAsAPlainUser TestWriteGuardAsAPlainUser
EMPTY       :=

build: ## build every binary into bin/
	@for name in $(TOOLS); do \
		CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/mcp-$$name$(EXE) ./tools/$$name || exit 1; \
	done
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/mcp-host$(EXE) ./host
	@echo "built $(BINARIES)"

# Tests run the binaries. They are built first, so that no time limit of a test
# depends on how long a compiler takes with empty caches.
test corpora raced conformance clients: build

# Vet is a part of lint, which looks for more than go test does. Many tests wait more
# than they work, so that more packages than processors are tested at a time; the two that
# take longest begin first. The time limit of a package is for a test that hangs, not for a
# slow machine.
test: ## run the tests that need nothing but Go
	$(PLAIN) $(GO) test -vet=off -p 4 -timeout 30m ./pkg/sandbox/proc ./tools/bash ./...

test-all: ## add the race detector, the oracles, real clients and fuzzing (installs them)
	@.ci/step oracles $(MAKE) --no-print-directory oracles
	@.ci/step corpora $(MAKE) --no-print-directory corpora
	@.ci/step race+oracles $(MAKE) --no-print-directory raced
	@.ci/step shared $(MAKE) --no-print-directory shared
	@.ci/step conformance $(MAKE) --no-print-directory conformance
	@.ci/step clients $(MAKE) --no-print-directory clients
	@.ci/step dist $(MAKE) --no-print-directory dist-test
	@.ci/step fuzz $(MAKE) --no-print-directory fuzz

corpora: ## run all cases of the long tests of the sandbox (a part of test-all)
	TOOLROOM_SAMPLE=all $(PLAIN) $(GO) test -vet=off -p 4 -timeout 30m -run '^($(subst $(EMPTY) ,|,$(strip $(CORPORA))))$$' ./pkg/sandbox/... ./tools/bash ./host/internal/confine

test-long: ## run the long attack corpora, races and 1 000 random sequences (an hour or two)
	TOOLROOM_SAMPLE=all PROC_LONG=1 BASH_LONG=1 TOOLROOM_SOAK=5m PROC_MOVES=1000 CHANGES_SEQUENCES=1000 UNDO_SEQUENCES=1000 \
		CHANGES_REPOSITORIES=1000 UNDO_REPOSITORIES=1000 CHANGES_CONFLICTS=300 UNDO_CONFLICTS=300 CHANGES_KILLS=200 CHANGES_DISCARD_KILLS=200 UNDO_KILLS=200 \
		$(PLAIN) $(GO) test -vet=off -count=1 -timeout 4h ./pkg/sandbox/... ./tools/bash

# The race detector's second of sleep at each process' end is for goroutines that are
# left then: ours have owners that wait for them.
raced: ## run the tests with the oracles under the race detector (a part of test-all)
	TOOLROOM_SOAK=1 TOOLROOM_ORACLES='$(CURDIR)/bench/oracle' CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -vet=off -race -p 4 -tags oracle -timeout 30m $(FOREIGN) $(RACED)

shared: ## run the tests of servers with processes that hosts can share (a part of test-all)
	UPSTREAM_SHARED=1 $(PLAIN) $(GO) test -vet=off -count=1 -short ./host/internal/upstream

# The official suites have short times for answers, so that they run by themselves;
# nothing of ours runs in their test, nor in that of the coding agents.
conformance: ## run the official suites and SDKs (a part of test-all)
	TOOLROOM_ORACLES='$(CURDIR)/bench/oracle' $(PLAIN) $(GO) test -vet=off -tags oracle -timeout 30m ./bench/conformance

clients: ## run coding agents and read what their models receive (a part of test-all)
	TOOLROOM_ORACLES='$(CURDIR)/bench/oracle' $(PLAIN) $(GO) test -vet=off -tags oracle -timeout 30m ./bench/clients

oracles: ## install the pinned programs that tests compare against
	@bench/oracle/install.sh

# Whether all of it compiles for other systems, tests included, is seen from its types
# alone, in a tenth of the time that compiling it takes.
lint: ## gofmt, vet, types as Windows and macOS have them, staticcheck, tidy go.mod
	@out=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
		if [ -n "$$out" ]; then echo "not gofmt-ed:"; echo "$$out"; exit 1; fi
	$(PLAIN) $(GO) vet -tags oracle,wine ./...
	$(PLAIN) $(GO) run .ci/elsewhere.go windows,darwin ./...
	$(PLAIN) $(GO) run $(STATICCHECK) -tags oracle,wine ./...
	$(GO) mod tidy -diff
	$(GO) mod verify
	cd dist && $(PLAIN) $(GO) vet -tags oracle ./... && $(PLAIN) $(GO) run $(STATICCHECK) -tags oracle ./... && $(GO) mod tidy -diff
	$(PLAIN) $(GO) run $(ACTIONLINT)

cross: ## vet and build for Windows and macOS (before a release; minutes)
	GOOS=windows $(PLAIN) $(GO) vet ./...
	GOOS=windows $(PLAIN) $(GO) build ./...
	GOOS=darwin $(PLAIN) $(GO) vet ./...
	GOOS=darwin $(PLAIN) $(GO) build ./...

wine: ## run the programs for Windows under Wine (installs it; before a release; minutes)
	@.ci/wine

race: ## run the tests under the race detector
	$(GO) test -race ./...

fuzz: ## run every fuzz target for FUZZTIME (default 10s) each
	@$(PLAIN) GO='$(GO)' FUZZTIME=$(FUZZTIME) .ci/fuzz

# Apart from the rest, since to compile these SDKs takes two minutes of a processor.
gosdk: build ## run the vendors' Go SDKs as clients of the API
	cd bench/gosdk && $(GO) test ./...

bench: oracles ## measure against other programs and write bench/RESULTS.md
	$(GO) run ./bench/run

pictures: build ## draw the pictures of README: the session, run again, and the chart
	$(GO) run ./bench/pictures -record

# The outputs of the commands in the pages are written by the test that runs them.
docs: build ## write the generated parts and the commands' outputs of the pages in docs/
	$(PLAIN) $(GO) run ./docs/gen -bin bin
	$(PLAIN) $(GO) test -vet=off ./docs -run TestCommands -update

site: ## write docs/ as a static site, with search, into site/
	$(PLAIN) $(GO) run ./docs/site -out site

dist: ## build the files of a release in dist/out (PLATFORMS=linux/amd64 for fewer)
	cd dist && GO='$(GO)' $(PLAIN) $(GO) run . $(PLATFORMS:%=-platforms %)

dist-check: ## build a release in two clones of the last commit and compare the files
	cd dist && GO='$(GO)' $(PLAIN) $(GO) run . -check $(PLATFORMS:%=-platforms %)

# One platform, since to compile for the others takes minutes; the generator is the same.
dist-test: oracles ## build a release for Linux twice, install and try it (a part of test-all)
	@$(MAKE) --no-print-directory dist-check PLATFORMS=linux/$$($(GO) env GOARCH)
	cd dist && TOOLROOM_ORACLES='$(CURDIR)/bench/oracle' GO='$(GO)' $(PLAIN) $(GO) test -vet=off -tags oracle -timeout 30m ./...

run: build ## build, then serve the current directory (ROOT=DIR for another) over HTTP
	@bin/mcp-host$(EXE) serve --root '$(ROOT)'

check: lint test ## what to run before a commit

clean: ## remove what was built
	rm -rf bin site dist/out

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

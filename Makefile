# A thin door in front of Meson and Ninja.
#
#   make            builds build/bawn
#   make run        shows what a cage around this folder does, or another: make run DIR=../project
#   make test       builds and runs all tests
#   make test-vm    the tests of cages on Debian's kernels, in virtual machines: ten minutes
#   make test-net   the attacks on an allow-list, each as root and as a user: four minutes
#   make test-agents  real agents from npm, hostile models, terminals, each as root and as a user: a quarter of an hour
#   make test-workers  workers killed, paused and cut off, with 2,000 runs on PostgreSQL: five minutes
#   make bench      measures a release build
#   make lint       formatters, analysers, sanitizers, and the project's own rules
#   make fuzz       fuzzes each target for FUZZ_SECONDS
#   make faults     fails and kills every system call of a start, and 10,000 keepers: half an hour
#   make install    to PREFIX, below DESTDIR
#   make clean      removes every build folder
#
# Each target first asks tools/install-deps.sh for the packages it needs; where they are
# installed, that takes milliseconds and no network.

DIR          ?= .
FUZZ_SECONDS ?= 60
KEEPERS      ?= 10000
PREFIX       ?= /usr/local

# A terminal sees ninja's one moving line; a log would get one line per file, and gets none.
ninja := ninja $(if $(MAKE_TERMOUT),,--quiet)

# Sets a build folder up once; what meson says matters only when it fails.
setup = @test -f $(1)/build.ninja || said=$$(meson setup $(1) $(2)) || { echo "$$said"; exit 1; }

.PHONY: all run test test-agents test-net test-vm test-workers bench lint fuzz faults install clean
.NOTPARALLEL:

all: deps-build
	$(call setup,build)
	@$(ninja) -C build
	@test -e build/bawn || ln -sf src/cli/bawn build/bawn

run: all
	@cd '$(DIR)' && '$(CURDIR)/tools/demo.sh' '$(CURDIR)/build/bawn'

test: deps-test all
	@tools/run-tests.py build

test-vm: deps-test all
	@tools/run-tests.py build --suite vm

test-net: deps-test all
	@tests/net/attacks.py build/bawn build/src/cli/bawn-breakable --all

test-agents: deps-test all
	@tests/agents/all.sh build

test-workers: deps-test all
	@tests/worker/faults.py build/src/cli/bawn build/src/cli/bawn-pg --all

bench: deps-bench
	$(call setup,build-release,--buildtype=release)
	@$(ninja) -C build-release
	@tests/bench/run build-release

lint: deps-lint all
	@tools/lint.sh

fuzz: deps-fuzz
	@tools/fuzz.sh '$(FUZZ_SECONDS)'

faults: deps-test all
	@tests/faults/faults.py build/bawn build/tests/faults/inject build/tests/faults/witness --all
	@tests/faults/faults.py build/bawn build/tests/faults/inject build/tests/faults/witness --all --write
	@tests/faults/faults.py build/bawn build/tests/faults/inject build/tests/faults/witness --all --allow
	@tests/faults/killed.py build/bawn --count $(KEEPERS)
	@tests/faults/leaks.py build/bawn --count $(KEEPERS)

# A build folder remembers its prefix, so it is told each time.
install: all
	@meson configure build -Dprefix='$(PREFIX)' && ninja -C build >/dev/null
	@DESTDIR='$(abspath $(DESTDIR))' meson install -C build --no-rebuild --quiet

clean:
	rm -rf build build-*

deps-%:
	@tools/install-deps.sh $*

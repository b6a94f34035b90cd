# A thin door in front of Meson and Ninja.
#
#   make            builds build/bawn
#   make run        shows what a cage around this folder does, or another: make run DIR=../project
#   make test       builds and runs all tests
#   make test-vm    the tests of cages on Debian's kernels, and a tour on Debian 12 and 13, in virtual machines: a quarter of an hour
#   make test-net   the attacks on an allow-list, each as root and as a user: four minutes
#   make test-agents  real agents from npm, hostile models, terminals, each as root and as a user: a quarter of an hour
#   make test-workers  workers killed, paused and cut off, with 2,000 runs on PostgreSQL: five minutes
#   make bench      measures a release build
#   make lint       formatters, analysers, sanitizers, and the project's own rules
#   make fuzz       fuzzes each target for FUZZ_SECONDS
#   make faults-start  fails and kills every system call of a run's start and end: six minutes
#   make faults     the same with a writable project and with a destination, and 10,000 keepers: half an hour
#   make install    to PREFIX (/usr/local), below DESTDIR; says where things went
#   make uninstall  removes what make install put there
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

.PHONY: all run test test-agents test-net test-vm test-workers bench lint fuzz faults faults-start install uninstall clean
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
	@tests/net/attacks.py build/bawn build/src/cli/bawn-breakable --all | tools/sum-tap.awk

test-agents: deps-test all
	@tests/agents/all.sh build | tools/sum-tap.awk

test-workers: deps-test all
	@tools/run-tests.py build --suite workers

bench: deps-bench
	$(call setup,build-release,--buildtype=release)
	@$(ninja) -C build-release
	@tests/bench/run build-release

lint: deps-lint all
	@tools/lint.sh

fuzz: deps-fuzz
	@tools/fuzz.sh '$(FUZZ_SECONDS)'

faults-start: deps-test all
	@tools/run-tests.py build --suite faults

faults: faults-start
	@tests/faults/faults.py build/bawn build/tests/faults/inject build/tests/faults/witness --all --write
	@tests/faults/faults.py build/bawn build/tests/faults/inject build/tests/faults/witness --all --allow
	@tests/faults/killed.py build/bawn --count $(KEEPERS)
	@tests/faults/leaks.py build/bawn --count $(KEEPERS)

install: all
	@tools/install.py build install '$(PREFIX)' '$(DESTDIR)'

uninstall:
	@tools/install.py build uninstall '$(PREFIX)' '$(DESTDIR)'

clean:
	rm -rf build build-*

deps-%:
	@tools/install-deps.sh $*

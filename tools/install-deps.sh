#!/bin/sh
# Installs the Debian packages a task needs; does nothing, and quickly, when none is missing.
# This is the only place where packages are named.
#
#   tools/install-deps.sh build|test|lint|fuzz|bench
set -eu

libraries='libc-ares-dev libfyaml-dev libpcre2-dev libseccomp-dev libsodium-dev libpq-dev libsqlite3-dev libssl-dev zlib1g-dev'
build="gcc libc6-dev meson ninja-build pkg-config python3 $libraries"
vm='busybox-static cpio e2fsprogs mmdebstrap qemu-system-x86' # the kernels are not installed: tests/vm/run.py
terminal='htop less tmux vim' # run in cages, or from outside
# A network of the tests' own, and clients that run in cages; npm is added below.
# Prometheus is not installed, as it would start a service: tests/peers/promtool.py
net='bind9-dnsutils curl iproute2 nodejs openjdk-17-jdk-headless openssl python3-pip wget'
test="$build $vm $terminal $net bash bubblewrap git groff-base mount patch postgresql ripgrep util-linux"
clang='clang libclang-rt-dev'
# A large tree, to be built, what else carries bytes, and what else starts containers.
bench='bc bison crun flex libelf-dev linux-source-6.1 make passt runc socat'

# What the packages are wanted for, to ask a system that has no dpkg. Virtual machines are made of
# Debian's packages, and elsewhere of none.
build_tools='gcc meson ninja pkg-config python3'
test_tools="$build_tools bash curl dig git groff htop ip java less mount node npm openssl patch rg setpriv tmux unshare
	vim wget"

case ${1-} in
build) wanted=$build tools=$build_tools ;;
test) wanted=$test tools=$test_tools ;;
lint)
	wanted="$test $clang clang-format clang-tidy cppcheck shellcheck"
	tools="$test_tools clang clang-format clang-tidy cppcheck shellcheck"
	;;
bench)
	wanted="$test $bench"
	tools="$test_tools bc bison bwrap crun flex make pasta runc socat"
	;;
fuzz) wanted="$test $clang" tools="$test_tools clang" ;;
*)
	echo "usage: $0 build|test|lint|fuzz|bench" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
	missing=
	for tool in $tools; do
		command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
	done
	for library in libcares libfyaml libpcre2-8 libseccomp libsodium libpq sqlite3 openssl; do
		pkg-config --exists "$library" 2>/dev/null || missing="$missing $library"
	done
	echo "$0: this is not Debian; '$1' needs what Debian calls: $wanted" >&2
	[ -z "$missing" ] && exit 0
	echo "$0: please install the ones for:$missing" >&2
	exit 1
fi

# needed PACKAGE...: those of them that are not installed.
needed() {
	# The second letter is the state: 'i' is installed, whether wanted ('ii') or held ('hi').
	# shellcheck disable=SC2016 # dpkg-query expands the format
	installed=" $(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null |
		sed -n 's/^.i. *//p' | tr '\n' ' ')"
	for package; do
		case $installed in
		*" $package "*) ;;
		*) printf ' %s' "$package" ;;
		esac
	done
}

# install PACKAGE...
install() {
	# A fresh machine may still be busy with its own first updates: wait for the lock.
	options='-o DPkg::Lock::Timeout=300'
	command="apt-get update && apt-get install -y --no-install-recommends $*"

	if [ "$(id -u)" = 0 ]; then
		as_root() { DEBIAN_FRONTEND=noninteractive "$@"; }
	elif command -v sudo >/dev/null 2>&1; then
		as_root() { sudo DEBIAN_FRONTEND=noninteractive "$@"; }
	else
		echo "$0: packages are missing and installing them needs root; as root, run: $command" >&2
		exit 1
	fi

	echo "installing: $*"
	# Old lists may still do, so a failed update alone does not end the attempt.
	# shellcheck disable=SC2086 # options are words
	as_root apt-get -qq $options update || echo "$0: could not update the package lists" >&2
	# shellcheck disable=SC2086
	as_root apt-get -qq $options install -y --no-install-recommends "$@" || {
		echo "$0: installing failed; what it tried, as root: $command" >&2
		exit 1
	}
}

# shellcheck disable=SC2086 # packages are words
missing=$(needed $wanted)
# shellcheck disable=SC2086
[ -z "$missing" ] || install $missing

# Debian's nodejs has npm in a package of its own; others bring it along, and conflict with that.
case " $wanted " in
*" nodejs "*) command -v npm >/dev/null 2>&1 || install npm ;;
esac

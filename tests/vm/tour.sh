# What a person does in the first hour, in a session of its own; prints TAP without numbers.
#
#   sh tour.sh login        as the user who logged in: a systemd manager of its own runs
#   sh tour.sh su USER      as root: what USER gets who was entered by su
#
# shellcheck shell=sh
bawn=/bawn/bawn
cases=0

# check NAME COMMAND...: a case, good if the command succeeds; what it printed is noted if not
check() {
	name=$1
	shift
	cases=$((cases + 1))
	if said=$("$@" 2>&1); then
		echo "ok - $name"
	else
		echo "not ok - $name"
		echo "$said" | tail -n 15 | sed 's/^/# /'
	fi
}

# says TEXT STATUS COMMAND...: the command ends so, and says that
says() {
	text=$1 status=$2
	shift 2
	said=$("$@" 2>&1)
	ended=$?
	echo "$said"
	[ $ended -eq "$status" ] && case $said in *"$text"*) true ;; *) false ;; esac
}

# silent COMMAND...: it succeeds, and bawn says nothing
silent() {
	said=$("$@" 2>&1) || { echo "$said"; return 1; }
	[ -z "$said" ] || { echo "$said"; return 1; }
}

use_memory='dd if=/dev/zero of=/dev/null bs=150M count=1'

tour_login() {
	check "cgroups are version 2 only" test -e /sys/fs/cgroup/cgroup.controllers
	check "AppArmor is on" grep -q Y /sys/module/apparmor/parameters/enabled
	check "the login is a session in which no cgroup is delegated" \
		sh -c 'grep -q "session-.*[.]scope$" /proc/self/cgroup && ! test -w "/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)"'
	check "a hardened cage is possible" says "Hardened cages are possible here" 0 $bawn doctor
	check "memory and processors can be limited" says "yes limits.cpu" 0 $bawn doctor
	check "memory can be limited" says "yes limits.memory" 0 $bawn doctor

	mkdir -p ~/project/src && cd ~/project || exit 1
	git init -q . && git config user.name A && git config user.email a@example.org
	echo 'int one;' >src/parse.c && git add . && git commit -qm start

	check "a command runs, and bawn says nothing" silent $bawn run -- true
	check "what it changes is shown and applied" sh -c "
		$bawn run -- sed -i s/one/two/ src/parse.c && $bawn diff | grep -q '^+int two;' &&
		grep -q one src/parse.c && $bawn apply && grep -q two src/parse.c"
	check "memory and processors are limited" silent $bawn run --memory 512M --cpus 1.5 -- true
	check "the limit is the kernel's" sh -c "
		$bawn run --memory 300M --cpus 0.5 -- sleep 20 & sleep 8
		grep -rqx 314572800 /sys/fs/cgroup/user.slice/user-\$(id -u).slice/user@*/app.slice/bawn-*.scope/bawn-*/memory.max &&
		grep -rq '^50000 100000' /sys/fs/cgroup/user.slice/user-\$(id -u).slice/user@*/app.slice/bawn-*.scope/bawn-*/cpu.max
		status=\$?; kill \$!; wait; exit \$status"
	# shellcheck disable=SC2086 # words
	check "more memory than the limit is not given" says "ran out of memory (limits.memory: 64M)" 137 \
		$bawn run --memory 64M -- $use_memory
	# shellcheck disable=SC2086
	check "twin: with a higher limit it is" says "157286400 bytes" 0 $bawn run --memory 400M -- $use_memory
	check "time, processes, disk and output are limited" \
		$bawn run --time 1m --pids-limit 200 --disk 100M --output 1M -- true
	check "a session has limits too" sh -c "
		$bawn session create --name web --memory 256M && $bawn session exec web -- true && $bawn session rm web"
	check "the record verifies" sh -c "$bawn run -q -- true && $bawn verify \$(ls ~/.local/state/bawn/runs | tail -n 1)"
	check "the limits are in the record" sh -c "
		cat ~/.local/state/bawn/runs/*/events.jsonl | grep -c limits.memory"
	sleep 1
	check "no scope is left" sh -c '! ls -d /sys/fs/cgroup/user.slice/user-$(id -u).slice/user@*/app.slice/bawn-*'
}

tour_su() {
	in_su() {
		# As the user, in the login of root.
		su "$user" -c "cd; mkdir -p project; cd project; $1"
	}
	user=$1
	check "no manager runs for who was entered by su" sh -c "! test -e /run/user/$(id -u "$1")"
	check "a command runs all the same" in_su "$bawn run -- true"
	check "a limit of memory is refused, with what to do here" says "loginctl enable-linger" 125 \
		in_su "$bawn run --memory 1G -- true"
	check "the doctor says it as well" says "no systemd manager runs for it" 0 in_su "$bawn doctor"
	loginctl enable-linger "$1"
	sleep 5
	check "twin: with a manager the limit holds" in_su "$bawn run --memory 1G -- true"
}

"tour_$1" "${2-}"
echo "1..$cases"

# bawn preflight 2: run in the cage before anything of the user's; the same text everywhere.
# 11: root here would be root outside.  12: the home is not the cage's own.
mapped=no
while read -r inside outside count; do
	[ "$outside" = 0 ] && mapped=no && break
	mapped=yes
done </proc/self/uid_map
if [ "$mapped" = no ]; then
	uid=
	while read -r key real effective rest; do
		[ "$key" = Uid: ] && uid=$real/$effective && break
	done </proc/self/status
	case $uid in '' | 0/* | */0) exit 11 ;; esac
fi
[ "$HOME" = /home/agent ] || exit 12
exit 0

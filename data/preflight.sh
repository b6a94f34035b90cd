# bawn preflight 1: run in the cage before anything of the user's; the same text everywhere.
# 11: root here would be root outside.  12: the home is not the cage's own.
uid=
while read -r key real effective rest; do
	[ "$key" = Uid: ] && uid=$real/$effective
done </proc/self/status
case $uid in
'') exit 11 ;;
0/* | */0)
	mapped=no
	while read -r inside outside count; do
		[ "$inside" = 0 ] && [ "$outside" != 0 ] && mapped=yes
	done </proc/self/uid_map
	[ "$mapped" = yes ] || exit 11
	;;
esac
[ "$HOME" = /home/agent ] || exit 12
exit 0

# bawn preflight 3: in every cage, before anything of the user's; the same text everywhere.
# The cage's init carries out exactly this. By hand: bawn preflight | HOME=/home/agent sh; echo $?
# 11: root here would be root outside.  12: the home is not the cage's own.

# A number other than 0.
is_other() { case $1 in '' | 0* | *[!0-9]*) return 1 ;; esac; }

safe=no
while read -r inside outside count; do
	safe=no
	is_other "$outside" || break
	safe=yes
done </proc/self/uid_map
if [ "$safe" = no ]; then
	while read -r key real effective rest; do
		[ "$key" = Uid: ] || continue
		is_other "$real" && is_other "$effective" && safe=yes
		break
	done </proc/self/status
fi
[ "$safe" = yes ] || exit 11
[ "$HOME" = /home/agent ] || exit 12
exit 0

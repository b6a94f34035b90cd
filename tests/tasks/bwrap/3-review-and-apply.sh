cp -a . ../copy
bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs "$HOME" --bind ../copy "$PWD" --unshare-all --clearenv --setenv PATH "$PATH" --new-session --die-with-parent --chdir "$PWD" -- sed -i s/one/two/ notes
! diff -ru . ../copy
cp -a ../copy/. .
test "$(cat notes)" = two # check

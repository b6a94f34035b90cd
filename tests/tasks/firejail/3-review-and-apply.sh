cp -a . ../copy
firejail --noprofile --net=none --private-tmp --private=../copy --caps.drop=all --seccomp -- sed -i s/one/two/ notes
! diff -ru . ../copy
cp -a ../copy/. .
test "$(cat notes)" = two # check

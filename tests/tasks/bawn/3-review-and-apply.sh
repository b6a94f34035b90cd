bawn run -- sed -i s/one/two/ notes
bawn diff
bawn apply
test "$(cat notes)" = two # check

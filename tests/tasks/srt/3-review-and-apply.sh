cp -a . ../copy
(cd ../copy && echo '{"network":{"allowedDomains":[],"deniedDomains":[]},"filesystem":{"denyRead":[],"allowWrite":["."],"denyWrite":[]}}' >../srt.json)
(cd ../copy && srt --settings ../srt.json sed -i s/one/two/ notes)
! diff -ru . ../copy
cp -a ../copy/. .
test "$(cat notes)" = two # check

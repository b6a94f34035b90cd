# The server gets the whole network of the host.
firejail --noprofile --private-tmp --whitelist="$PWD" --caps.drop=all --seccomp -- node server.js &
curl -s --retry 40 --retry-delay 1 --retry-all-errors http://localhost:3000 | grep hello # check
kill $! # check

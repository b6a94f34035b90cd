# The server gets the whole network of the host.
bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs "$HOME" --bind "$PWD" "$PWD" --unshare-all --clearenv --setenv PATH "$PATH" --new-session --die-with-parent --share-net -- /usr/bin/node server.js &
curl -s --retry 40 --retry-delay 1 --retry-all-errors http://localhost:3000 | grep hello # check
kill $! # check

bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs "$HOME" --bind "$PWD" "$PWD" --unshare-all --clearenv --setenv PATH "$PATH" --new-session --die-with-parent -- npm test

mkdir ../kept
bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --bind ../kept "$HOME" --bind "$PWD" "$PWD" --unshare-all --clearenv --setenv PATH "$PATH" --setenv HOME "$HOME" --new-session --die-with-parent -- sh -c 'echo kept >~/tool'
bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --bind ../kept "$HOME" --bind "$PWD" "$PWD" --unshare-all --clearenv --setenv PATH "$PATH" --setenv HOME "$HOME" --new-session --die-with-parent -- sh -c 'grep kept ~/tool'

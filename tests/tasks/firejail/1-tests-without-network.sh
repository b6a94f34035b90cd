firejail --noprofile --net=none --private-tmp --whitelist="$PWD" --caps.drop=all --seccomp -- npm test

# Address space of each process, not memory of all.
firejail --noprofile --net=none --private-tmp --whitelist="$PWD" --caps.drop=all --seccomp --rlimit-as=32g --timeout=00:01:00 -- npm test

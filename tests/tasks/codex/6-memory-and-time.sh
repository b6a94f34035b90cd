# Address space of each process, not memory of all.
ulimit -v 33554432 && timeout 60 codex sandbox -- npm test

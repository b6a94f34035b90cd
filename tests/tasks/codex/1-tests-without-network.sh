codex sandbox -- npm test

bawn run -- npm test

bawn run --memory 1G --time 1m -- npm test

bawn run --allow npm -- npm ci

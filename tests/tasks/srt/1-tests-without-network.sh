srt npm test

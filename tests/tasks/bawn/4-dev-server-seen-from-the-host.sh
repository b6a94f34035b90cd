bawn run --publish 3000:3000 -- node server.js &
curl -s --retry 40 --retry-delay 1 --retry-all-errors http://localhost:3000 | grep hello # check
kill $! # check

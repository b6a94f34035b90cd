# shellcheck shell=bash
# A project with a test and a server.
mkdir -p ~/project && cd ~/project || exit 1
printf 'test:\n\t@echo made\n' >Makefile
cat >package.json <<'END'
{ "name": "project", "version": "1.0.0", "scripts": { "dev": "node server.js" } }
END
echo 'require("http").createServer((_, answer) => answer.end("hello\n")).listen(3000)' >server.js

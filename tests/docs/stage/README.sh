# shellcheck shell=bash
# A project in a repository, a folder beside it, an agent that only greets, and a cargo in the home.
mkdir -p ~/project/src ~/lib ~/.config/bawn ~/.local/bin && cd ~/project || exit 1
export PATH=~/.local/bin:~/.cargo/bin:$PATH ANTHROPIC_API_KEY=sk-example
echo 'int one;' >src/parse.c
cat >package.json <<'END'
{ "name": "project", "version": "1.0.0", "scripts": { "test": "echo tests passed" } }
END
cat >package-lock.json <<'END'
{ "name": "project", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": { "": {} } }
END
git init -q && git add . && git -c user.name=you -c user.email=you@example.org commit -qm first
printf '#!/bin/sh\necho "int two;" >src/parse.c\n' >~/.local/bin/claude && chmod +x ~/.local/bin/claude
mkdir -p ~/.cargo/bin && printf '#!/bin/sh\necho built\n' >~/.cargo/bin/cargo && chmod +x ~/.cargo/bin/cargo

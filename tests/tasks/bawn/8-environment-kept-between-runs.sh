bawn session create --name dev
bawn session exec dev -- sh -c 'echo kept >~/tool'
bawn session exec dev -- sh -c 'grep kept ~/tool'

mkdir ../kept
firejail --noprofile --net=none --private-tmp --private=../kept --caps.drop=all --seccomp -- sh -c 'echo kept >~/tool'
firejail --noprofile --net=none --private-tmp --private=../kept --caps.drop=all --seccomp -- sh -c 'grep kept ~/tool'

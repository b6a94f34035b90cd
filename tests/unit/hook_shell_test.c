/* What the words of shell commands are taken for. */
#include <stdio.h>
#include <string.h>

#include "agent/hook/hook.h"
#include "base/count.h"
#include "check.h"

/* "r /etc/x w out": what a command touches, in its order, from /work/sub. */
static const char *uses_of(const char *script)
{
	static char text[4096];
	static struct hook_call c;
	size_t n = 0;

	c = (struct hook_call){ .home = "/home/agent", .folder = "/work/sub", .tool = "Bash" };
	arena_init(&c.arena, 1 << 20);
	hook_shell_scan(&c, script);
	text[0] = '\0';
	for (size_t i = 0; i < c.count && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s%s%s", i ? " " : "",
			c.uses[i].writes ? "w " : "r ",
			c.uses[i].path[0] == '/' ? "" : c.uses[i].folder,
			c.uses[i].path[0] == '/' ? "" : "/", c.uses[i].path);
	hook_call_done(&c);
	return text;
}

static const struct {
	const char *script, *uses;
} rows[] = {
	/* Words that are paths, and words that are not. */
	{ "cat /etc/shadow", "r /etc/shadow" },
	{ "cat '/etc/shadow' \"/root/a b\"", "r /etc/shadow r /root/a b" },
	{ "cat /et\\c/x", "r /etc/x" },
	{ "sed -n '/x/p' f", "" },
	{ "sed -n '/etc/p' f", "" },
	{ "grep -rn /root /home/bob", "r /home/bob" },
	{ "awk '/home/ {print}' ../x", "r /work/sub/../x" },
	{ "cat a b/c ./d /nowhere/x //x", "" },
	{ "cat ~/.ssh/id ~ ~root/x ~bob",
		"r /home/agent/.ssh/id r /home/agent r /root/x r /home/bob" },
	{ "cat $HOME/a \"${HOME}/b\" $X/c /etc/$X", "r /home/agent/a r /home/agent/b" },
	{ "ls .. ../.. ..a", "r /work/sub/.. r /work/sub/../.." },
	{ "ls /etc/*.d/x /root/?", "r /etc/ r /root/" },
	{ "gcc --sysroot=/mnt/x -I/usr/include a.c", "r /mnt/x" },
	{ "X=/etc/a Y=/root make", "" },
	{ "make PREFIX=/opt/x", "r /opt/x" },
	{ "/root/bin/tool", "r /root/bin/tool" },
	{ "echo /etc/shadow; printf %s /root", "" },
	{ "git commit -m 'see /etc/hosts'", "" },
	{ "cat x # /etc/shadow", "" },
	{ "http https://example.org/etc/x", "" },
	{ "cat '/root/*' '/etc/{print $1}' '~ x'", "" },
	/* Patterns, wherever they are. */
	{ "sed -e 1d -e '/root/d' /root/x", "r /root/x" },
	{ "sed -i -e 1d -e '/x/d' f", "w /work/sub/f" },
	{ "sed -Ei.bak '/x/d' f", "w /work/sub/f" },
	{ "sed --expression '/root/d' /root/x", "r /root/x" },
	{ "perl -pi -e '/root/' -e '/x/' f", "w /work/sub/f" },
	{ "awk -F ':' -v x=/root '/root/' /root/x", "r /root/x" },
	{ "awk -F: '/root/' /root/x", "r /root/x" },
	{ "grep -rn -A 3 -m 5 /root /root/x", "r /root/x" },
	{ "grep -A3 /root /root/x", "r /root/x" },
	{ "grep -ine /root -e /etc/x /root/x", "r /root/x" },
	{ "grep --include '*.c' --exclude-dir=x /root /root/x", "r /root/x" },
	{ "grep -i /root /root/x", "r /root/x" },
	{ "rg -t js -g '*.ts' /root /root/x", "r /root/x" },
	{ "rg --files /root", "r /root" },
	{ "jq --arg a /root ..x /root/x", "r /root/x" },
	{ "find /root ../x -path '/etc/*' -exec cat /etc/x ';'", "r /root r /work/sub/../x" },
	{ "find -L /root -name x", "r /root" },
	{ "[ \"$X\" = /root ] && [[ $X == /etc/* ]]; test -n /root", "" },
	{ "[ -d /root ]", "r /root" },
	{ "git commit -m '/root/ is gone'; git log -S /root", "" },
	{ "export HOME=/root; docker run -v /root:/root x", "" },
	{ "case $X in /root/*) cat /root/x;; esac", "r /root/x" },
	/* Redirections. */
	{ "echo x > out", "w /work/sub/out" },
	{ "echo x >> /etc/profile 2> /dev/null", "w /etc/profile w /dev/null" },
	{ "a >|b &>c 2>&1 >&2 <d <>e", "w /work/sub/b w /work/sub/c r /work/sub/d w /work/sub/e" },
	{ "cat <<EOF > a\ncat /etc/shadow\nEOF\ncat /root/x", "w /work/sub/a r /root/x" },
	{ "cat <<-'E'\n\t/etc/x > y\n\tE\nls /root", "r /root" },
	{ "cat <<< /etc/shadow", "" },
	{ "a > $X", "" },
	/* Writers. */
	{ "rm -rf a /etc/x", "w /work/sub/a w /etc/x" },
	{ "tee -a a /root/b", "w /work/sub/a w /root/b" },
	{ "mv a /srv/b", "w /work/sub/a w /srv/b" },
	{ "cp /etc/a b c", "r /etc/a w /work/sub/c" },
	{ "cp -t /opt /etc/a /etc/b", "w /opt r /etc/a r /etc/b" },
	{ "cp --target-directory=/opt /etc/a", "w /opt r /etc/a" },
	{ "ln -s /etc/passwd a", "w /work/sub/a" },
	{ "chmod 700 a", "w /work/sub/a" },
	{ "dd if=/dev/zero of=/etc/x bs=1", "r /dev/zero w /etc/x" },
	{ "mkdir -p a/b && touch a/b/c", "w /work/sub/a/b w /work/sub/a/b/c" },
	{ "sed -i s/a/b/ .git/config", "w /work/sub/.git/config" },
	{ "sudo tee /etc/x", "w /etc/x" },
	{ "timeout 5 rm x", "w /work/sub/x" },
	{ "find . | xargs rm -f /etc/x", "w /etc/x" },
	/* Where they are. */
	{ "touch -r /etc/passwd a", "w /work/sub/a" },
	{ "cd /tmp && touch a", "r /tmp w /tmp/a" },
	{ "cd a; rm b", "w /work/sub/a/b" },
	{ "cd; rm b", "w /home/agent/b" },
	{ "cd $X; rm b; rm /etc/c", "w /etc/c" },
	{ "(cd /; ls); touch a", "w /work/sub/a" },
	{ "cd -; rm a", "" },
	/* Commands in commands. */
	{ "bash -lc 'cat /etc/shadow'", "r /etc/shadow" },
	{ "sh -c \"rm a; cat $(cat /root/x)\"", "r /root/x w /work/sub/a" },
	{ "'bash' '-lc' 'cat /etc/shadow'", "r /etc/shadow" },
	{ "eval 'cat /etc/shadow'", "r /etc/shadow" },
	{ "x=$(cat /etc/shadow)", "r /etc/shadow" },
	{ "echo \"a $(cat /etc/shadow) b\" `cat /root/x`", "r /etc/shadow r /root/x" },
	{ "diff <(cat /etc/a) b", "r /etc/a" },
	{ "if true; then cat /etc/a; else rm b; fi", "r /etc/a w /work/sub/b" },
	{ "while :; do cat /etc/a; done", "r /etc/a" },
	{ "apply_patch <<'E'\n*** Begin Patch\n*** Update File: a/b\n*** Move to: /etc/c\nE\n",
		"w /work/sub/a/b w /etc/c" },
	/* Broken ones. */
	{ "", "" },
	{ "'", "" },
	{ "cat \"/etc/x", "r /etc/x" },
	{ "cat $(", "" },
	{ "cat ${", "" },
	{ "cat `", "" },
	{ ">", "" },
	{ "> >", "" },
	{ "))))((((", "" },
	{ "cat <<", "" },
	{ "\\", "" },
	{ "cat <<E\n/etc/x", "" },
};

static void test_rows(void)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *got = uses_of(rows[i].script);

		if (strcmp(got, rows[i].uses) != 0)
			printf("%s\n  is  %s\n  not %s\n", rows[i].script, got, rows[i].uses);
		check_that(strcmp(got, rows[i].uses) == 0, rows[i].script, __FILE__, __LINE__);
	}
}

/* A piece of text again and again. */
static const char *many(const char *piece)
{
	static char script[200000];
	size_t n = strlen(piece);

	for (size_t i = 0; i + 1 < sizeof(script); i++)
		script[i] = piece[i % n];
	return script;
}

/* Neither its depth nor its length is a matter. */
static void test_much(void)
{
	CHECK_STR(uses_of(many("$(")), "");
	CHECK_STR(uses_of(many("(")), "");
	CHECK_STR(uses_of(many("/")), "");
	CHECK(strlen(uses_of(many("/etc/x "))) > 1000);
}

int main(void)
{
	test_rows();
	test_much();
	return check_report();
}

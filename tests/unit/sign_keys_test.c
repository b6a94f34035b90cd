/* The operator's own keys, in a folder made for the test and removed after it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "check.h"
#include "proof/sign/sign.h"

static struct sign_key make(int state, bool replaces, int wanted)
{
	struct sign_key key = { 0 };
	struct err e = { 0 };
	int r = sign_make_key(state, replaces, &key, &e);

	if (r != wanted)
		printf("made: %d %s\n", r, e.text);
	CHECK(r == wanted && !e.text[0]);
	return key;
}

static struct stat look(int state, const char *path)
{
	struct stat st = { 0 };

	CHECK(fstatat(state, path, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st;
}

/* Is it one of the operator's public keys, the current one or a former? */
static bool is_own(int state, const struct sign_public *key)
{
	struct sign_public own;

	return sign_find_own(state, key->id, &own, NULL) == 0 &&
	       memcmp(own.bytes, key->bytes, sizeof(own.bytes)) == 0;
}

static void test_make(int state)
{
	own(sign_key) struct sign_key key = { 0 }, same, again, next;
	struct sign_public found;
	struct err e = { 0 };
	char former[128];

	CHECK(sign_load_key(state, &key, &e) == -ENOENT && !e.text[0]);
	key = make(state, false, 0);
	CHECK(!is_own(state, &(struct sign_public){ 0 }));
	CHECK((look(state, "keys").st_mode & 07777) == 0700);
	CHECK(look(state, "keys/signing.pem").st_mode == (S_IFREG | 0600));
	CHECK(sign_load_key(state, &same, &e) == 0 && memcmp(&same, &key, sizeof(key)) == 0);
	again = make(state, false, -EEXIST);
	CHECK(memcmp(&again, &key, sizeof(key)) == 0);
	CHECK(is_own(state, &key.public));
	next = make(state, true, 0);
	CHECK(!str_eq(next.public.id, key.public.id));
	CHECK(is_own(state, &key.public) && is_own(state, &next.public));
	CHECK(sign_find_own(state, key.public.id, &found, &e) == 0);
	CHECK(memcmp(&found, &key.public, sizeof(found)) == 0);
	snprintf(former, sizeof(former), "keys/former/%s.pub", key.public.id);
	CHECK(S_ISREG(look(state, former).st_mode));
	/* Of what was replaced only the public one is left, and no draft of anything. */
	CHECK(faccessat(state, "keys/signing.pem.new", F_OK, 0) < 0);
	CHECK(faccessat(state, "keys/signing.pub.new", F_OK, 0) < 0);
}

static void test_find(int state)
{
	own(sign_key) struct sign_key key = { 0 }, other = { 0 };
	static const char *const none[] = { "", "x", "../../keys/signing", "former",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000000/../x",
		"../../../../../../../../../../../../../../../../../../../../../x" };
	uint8_t seed[SIGN_SEED_SIZE] = { 7 };
	char from[128], to[128];
	struct sign_public found;
	struct err e = { 0 };

	sign_derive_key(seed, &other);
	for (size_t i = 0; i < COUNT_OF(none); i++)
		CHECK(sign_find_own(state, none[i], &found, &e) == -ENOENT && !e.text[0]);
	CHECK(!is_own(state, &other.public));
	/* A file that is named after one key and holds another is neither. */
	CHECK(sign_load_key(state, &key, NULL) == 0);
	snprintf(from, sizeof(from), "keys/signing.pub");
	snprintf(to, sizeof(to), "keys/former/%s.pub", other.public.id);
	CHECK(linkat(state, from, state, to, 0) == 0);
	CHECK(sign_find_own(state, other.public.id, &found, &e) == -ENOENT);
	CHECK(unlinkat(state, to, 0) == 0);
	/* An id that was made to fit does not make other bytes our key. */
	memcpy(other.public.id, key.public.id, sizeof(key.public.id));
	CHECK(!is_own(state, &other.public));
}

static void expect(int state, const char *part)
{
	own(sign_key) struct sign_key key = { 0 };
	struct err e = { 0 };
	int r = sign_load_key(state, &key, &e);

	if (r >= 0 || !strstr(e.text, part))
		printf("loaded: %d %s\n", r, e.text);
	CHECK(r < 0 && r != -ENOENT && strstr(e.text, part));
	/* Nor is one made in its place unasked. */
	e = (struct err){ 0 };
	r = sign_make_key(state, false, &key, &e);
	CHECK(r < 0 && r != -EEXIST && e.text[0]);
}

static void put(int state, const char *path, const char *text)
{
	own_fd int fd = openat(state, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0);
}

static void test_strange(int state)
{
	static const mode_t modes[] = { 0640, 0604, 0660, 0602, 0700, 0610 };
	own(buf) struct buf large = { .max = 10000 };
	own(sign_key) struct sign_key key = { 0 };

	for (size_t i = 0; i < COUNT_OF(modes); i++) {
		CHECK(fchmodat(state, "keys/signing.pem", modes[i], 0) == 0);
		expect(state, "has mode 0");
	}
	CHECK(fchmodat(state, "keys/signing.pem", 0400, 0) == 0);
	CHECK(sign_load_key(state, &key, NULL) == 0);
	CHECK(fchmodat(state, "keys/signing.pem", 0600, 0) == 0);
	CHECK(fchmodat(state, "keys", 0770, 0) == 0);
	expect(state, "it is not yours, or others can write to it");
	CHECK(fchmodat(state, "keys", 0700, 0) == 0);
	CHECK(renameat(state, "keys/signing.pem", state, "kept") == 0);
	CHECK(symlinkat("../kept", state, "keys/signing.pem") == 0);
	expect(state, "signing.pem");
	CHECK(unlinkat(state, "keys/signing.pem", 0) == 0);
	CHECK(mkfifoat(state, "keys/signing.pem", 0600) == 0);
	expect(state, "a plain file of yours");
	CHECK(unlinkat(state, "keys/signing.pem", 0) == 0);
	put(state, "keys/signing.pem", "");
	expect(state, "no Ed25519 private key");
	buf_repeat(&large, '\n', 9000);
	put(state, "keys/signing.pem", large.data);
	expect(state, "no Ed25519 private key");
	CHECK(renameat(state, "kept", state, "keys/signing.pem") == 0);
	CHECK(sign_load_key(state, &key, NULL) == 0);
}

/* Replacing helps where a key cannot be used, and keeps what is known of it. */
static void test_replace_bad(int state)
{
	own(sign_key) struct sign_key old = { 0 }, next;

	CHECK(sign_load_key(state, &old, NULL) == 0);
	CHECK(fchmodat(state, "keys/signing.pem", 0644, 0) == 0);
	next = make(state, true, 0);
	CHECK(look(state, "keys/signing.pem").st_mode == (S_IFREG | 0600));
	CHECK(is_own(state, &old.public) && is_own(state, &next.public));
	put(state, "keys/signing.pem", "nonsense");
	old = next;
	next = make(state, true, 0);
	CHECK(is_own(state, &old.public) && is_own(state, &next.public));
	/* A public file that does not belong to the key is put right by asking for one. */
	CHECK(unlinkat(state, "keys/signing.pub", 0) == 0);
	CHECK(!is_own(state, &next.public));
	make(state, false, -EEXIST);
	CHECK(is_own(state, &next.public));
}

#define CHILDREN 8

/* All who make one at once have the same, and exactly one made it. */
static void test_at_once(int state)
{
	own(sign_key) struct sign_key key = { 0 };
	int pipes[2], makers = 0;
	char ids[CHILDREN][SIGN_ID_SIZE];

	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	for (int i = 0; i < CHILDREN; i++)
		if (fork() == 0) {
			struct sign_key mine = { 0 };
			int r = sign_make_key(state, false, &mine, NULL);

			(void)!write(pipes[1], mine.public.id, SIGN_ID_SIZE);
			_exit(r == 0 ? 1 : r == -EEXIST ? 0 : 2);
		}
	for (int i = 0; i < CHILDREN; i++) {
		int status = -1;

		CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) < 2);
		makers += WEXITSTATUS(status);
	}
	CHECK(makers == 1);
	CHECK(read(pipes[0], ids, sizeof(ids)) == (ssize_t)sizeof(ids));
	CHECK(sign_load_key(state, &key, NULL) == 0);
	for (int i = 0; i < CHILDREN; i++)
		CHECK(strncmp(ids[i], key.public.id, SIGN_ID_SIZE) == 0);
	close(pipes[0]);
	close(pipes[1]);
}

/* Whenever the maker is killed there is a whole key, and the one before it is known still. */
static void test_killed(int state)
{
	for (unsigned i = 0; i < 40; i++) {
		own(sign_key) struct sign_key before = { 0 }, after = { 0 };
		int status;
		pid_t child;

		CHECK(sign_load_key(state, &before, NULL) == 0);
		child = fork();
		if (child == 0) {
			struct sign_key key;

			for (;;)
				sign_make_key(state, true, &key, NULL);
		}
		usleep(i * 137);
		CHECK(child > 0 && kill(child, SIGKILL) == 0);
		CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
		CHECK(sign_load_key(state, &after, NULL) == 0);
		CHECK(is_own(state, &before.public) && is_own(state, &after.public));
	}
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	char path[256], *name;
	own_fd int state = -1, parent = -1;

	snprintf(path, sizeof(path), "%s/bawn-keys-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(path))
		return 1;
	state = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test_make(state);
	test_find(state);
	test_strange(state);
	test_replace_bad(state);
	test_killed(state);
	CHECK(unlinkat(state, "keys/signing.pem", 0) == 0);
	test_at_once(state);
	name = strrchr(path, '/');
	*name = '\0';
	parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(tree_remove(parent, name + 1, NULL) == 0);
	return check_report();
}

/*
 * The resolver functions that OpenSSL links and never calls here. Those of libc would bring its
 * loader of modules along, into a program that is whole by itself.
 */
#include <netdb.h>
#include <stddef.h>

int getaddrinfo(
	const char *name, const char *service, const struct addrinfo *wanted, struct addrinfo **ret)
{
	(void)name;
	(void)service;
	(void)wanted;
	*ret = NULL;
	return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *found)
{
	(void)found;
}

int getnameinfo(const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size,
	char *service, socklen_t service_size, int flags)
{
	(void)address, (void)size, (void)host, (void)host_size, (void)service, (void)service_size;
	(void)flags;
	return EAI_NONAME;
}

struct hostent *gethostbyname(const char *name)
{
	(void)name;
	return NULL;
}

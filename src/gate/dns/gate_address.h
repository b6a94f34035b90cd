#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Addresses, always 16 bytes, IPv4 as ::ffff:a.b.c.d. Pure.
 */

#define GATE_ADDRESS_TEXT 64

/*
 * Why an address is not one of the public internet: "private", "loopback", "link-local", "metadata
 * service" …; NULL: it is public. One that carries an IPv4 address inside (mapped, NAT64, 6to4) is
 * judged by that one; Teredo's, and whatever is not known to be public, are not.
 */
const char *gate_address_reserved(const uint8_t address[static 16]);

/* Is it this machine by its form: loopback, or no address at all? */
bool gate_address_is_here(const uint8_t address[static 16]);

/* As people write it, without brackets. */
void gate_address_print(const uint8_t address[static 16], char ret[static GATE_ADDRESS_TEXT]);

/* From and to the system's form; false: neither IPv4 nor IPv6. A mapped one becomes IPv4. */
struct sockaddr_storage;
bool gate_address_read(
	const struct sockaddr_storage *from, uint8_t ret[static 16], uint16_t *ret_port);
unsigned gate_address_write(
	const uint8_t address[static 16], uint16_t port, struct sockaddr_storage *ret);

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Addresses, always 16 bytes, IPv4 as ::ffff:a.b.c.d. Pure.
 */

#define GATE_ADDRESS_TEXT 64

/*
 * Returns NULL for an address of the public internet, or why it is not one: "private", "loopback",
 * "link-local", "metadata service" …. An address with an IPv4 address inside (mapped, NAT64, 6to4)
 * is judged by that. Teredo, and all that is not known to be public, are not public.
 */
const char *gate_address_reserved(const uint8_t address[static 16]);

/* True for loopback and the unspecified address, which lead to this machine. */
bool gate_address_is_here(const uint8_t address[static 16]);

/* Prints an address without brackets. */
void gate_address_print(const uint8_t address[static 16], char ret[static GATE_ADDRESS_TEXT]);

/*
 * Convert from and to a sockaddr. Reading returns false for other families than IPv4 and IPv6;
 * writing makes a mapped address an IPv4 one and returns the size.
 */
struct sockaddr_storage;
bool gate_address_read(
	const struct sockaddr_storage *from, uint8_t ret[static 16], uint16_t *ret_port);
unsigned gate_address_write(
	const uint8_t address[static 16], uint16_t port, struct sockaddr_storage *ret);

/* SPDX-License-Identifier: ISC */
/*
 * What may be a name. Node, provider, pool and token names: [A-Za-z0-9._-]{1,64}, not beginning
 * with '-' or '.', case-sensitive. Tags (DESIGN "Tags"): [A-Za-z0-9._-]{1,64}, case-sensitive, not
 * beginning with '-', not "none" or "any".
 */
#pragma once

#include <stdbool.h>

bool name_valid(const char *s);
bool tag_name_valid(const char *s);
/* An IPv4 or IPv6 address without brackets or zone, or a host name by RFC 1123. */
bool address_valid(const char *s);

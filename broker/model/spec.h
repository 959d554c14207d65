/* SPDX-License-Identifier: ISC */
/*
 * What an administrator sets, as plain values: the same structs travel from the API and from the
 * database into the fleet. Fixed-size members, so that a spec is copied with '='.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secret.h"
#include "wire/limits.h"

/* Administrative state (DESIGN §6): set, never toggled. */
enum admin_mode { ADMIN_ENABLED, ADMIN_DRAIN, ADMIN_DISABLED };
const char *admin_mode_name(enum admin_mode mode);
int admin_mode_parse(const char *text, enum admin_mode *ret); /* 0 or -EINVAL */

enum mass_silence { MASS_SILENCE_REFUSE, MASS_SILENCE_KEEP };
const char *mass_silence_name(enum mass_silence m);
int mass_silence_parse(const char *text, enum mass_silence *ret);

struct tag_set {
	uint32_t count; /* at most LIMIT_TAGS_PER_NODE */
	char tag[LIMIT_TAGS_PER_NODE][LIMIT_NAME_SIZE];
};
/* 0; -EINVAL for what is no tag (named in E); -E2BIG. A tag already there is not added twice. */
int tag_set_add(struct tag_set *set, const char *tag, struct err *e);
bool tag_set_has(const struct tag_set *set, const char *tag);
void tag_set_remove(struct tag_set *set, const char *tag); /* nothing if it is not there */

/* One load rule: hundredths of a percent at which it reads 0 and 10000 slv. zero < full. */
struct load_rule {
	bool on;
	uint32_t zero, full;
};

struct provider_spec {
	uint32_t id; /* 0 = not stored yet */
	char name[LIMIT_NAME_SIZE];
	bool share_sessions, balance_by_metrics, prefer_sharing;
	enum mass_silence on_mass_silence;
	struct load_rule cpu, memory;	      /* defaults 0..10000 and 0..9500 */
	bool sessions_rule, load_script_rule; /* 0..max_sessions, 0..10000 */
	enum admin_mode mode;
	char mode_reason[LIMIT_REASON_SIZE];
};

enum untagged_default { UNTAGGED_NONE, UNTAGGED_ANY };

struct pool_spec {
	uint32_t id;
	char name[LIMIT_NAME_SIZE];
	uint32_t provider_id;
	char default_tags[LIMIT_TAG_TEXT_SIZE]; /* a tag request, "" = none */
	char forced_tags[LIMIT_TAG_TEXT_SIZE];
	struct tag_set allowed_tags; /* empty = all */
	enum untagged_default untagged_default;
	char rdp_extra[1024]; /* lines "key:t:value" separated by \n, allowed keys only */
	enum admin_mode mode;
	char mode_reason[LIMIT_REASON_SIZE];
};

#define NODE_MAX_SESSIONS 1000000u
#define NODE_MAX_MULTIPLIER 1000000u

struct node_spec {
	uint32_t id;
	char name[LIMIT_NAME_SIZE];
	uint32_t provider_id;
	char address[LIMIT_ADDRESS_SIZE];
	char fqdn[LIMIT_ADDRESS_SIZE]; /* "" = none */
	uint16_t port;		       /* default 3389 */
	struct tag_set tags;
	uint32_t max_sessions;	  /* 0 = no limit; at most NODE_MAX_SESSIONS */
	uint32_t load_multiplier; /* ten-thousandths: 10000 = 1.0; 1..NODE_MAX_MULTIPLIER */
	enum admin_mode mode;
	char mode_reason[LIMIT_REASON_SIZE];
};

enum role { ROLE_AGENT, ROLE_CLIENT, ROLE_AUDITOR, ROLE_ADMIN };
const char *role_name(enum role role);
int role_parse(const char *text, enum role *ret);

#define LIMIT_TOKEN_POOLS 32
struct token_spec {
	uint32_t id;
	char name[LIMIT_NAME_SIZE];
	enum role role;
	uint32_t node_id; /* agents: the one node; else 0 */
	uint8_t hash[SECRET_HASH_SIZE];
	uint32_t pool_count; /* clients: 0 = every pool */
	uint32_t pool_ids[LIMIT_TOKEN_POOLS];
	struct tag_set tags; /* clients: allowed tags, empty = all */
	bool see_sessions;   /* clients: session details in the answer */
	int64_t expires_us;  /* wall clock; 0 = never */
	bool revoked;
};

/* Defaults as DESIGN gives them. */
void provider_spec_init(struct provider_spec *s);
void pool_spec_init(struct pool_spec *s);
void node_spec_init(struct node_spec *s);
void token_spec_init(struct token_spec *s);

/* Whether each value is in its range; -EINVAL naming the member. Tag requests are checked by
 * policy/tags. */
int provider_spec_check(const struct provider_spec *s, struct err *e);
int pool_spec_check(const struct pool_spec *s, struct err *e);
int node_spec_check(const struct node_spec *s, struct err *e);
int token_spec_check(const struct token_spec *s, struct err *e);

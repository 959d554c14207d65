/* SPDX-License-Identifier: ISC */
/*
 * Names of the enumerations, defaults, and sets of tags. A table of names is indexed by its enum;
 * the words are those of the API, the database and the command line.
 */
#include "model/spec.h"

#include <errno.h>
#include <string.h>

#include "wire/names.h"

static const char *const admin_modes[] = {
	[ADMIN_ENABLED] = "enabled",
	[ADMIN_DRAIN] = "drain",
	[ADMIN_DISABLED] = "disabled",
};
static const char *const mass_silences[] = {
	[MASS_SILENCE_REFUSE] = "refuse",
	[MASS_SILENCE_KEEP] = "keep",
};
static const char *const roles[] = {
	[ROLE_AGENT] = "agent",
	[ROLE_CLIENT] = "client",
	[ROLE_AUDITOR] = "auditor",
	[ROLE_ADMIN] = "admin",
};
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *name_of(const char *const *table, size_t count, unsigned value)
{
	return value < count ? table[value] : "unknown";
}

static int value_of(const char *const *table, size_t count, const char *text, unsigned *ret)
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(table[i], text) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *admin_mode_name(enum admin_mode mode)
{
	return name_of(admin_modes, COUNT(admin_modes), mode);
}

int admin_mode_parse(const char *text, enum admin_mode *ret)
{
	unsigned value;

	if (value_of(admin_modes, COUNT(admin_modes), text, &value) < 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

const char *mass_silence_name(enum mass_silence m)
{
	return name_of(mass_silences, COUNT(mass_silences), m);
}

int mass_silence_parse(const char *text, enum mass_silence *ret)
{
	unsigned value;

	if (value_of(mass_silences, COUNT(mass_silences), text, &value) < 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

const char *role_name(enum role role)
{
	return name_of(roles, COUNT(roles), role);
}

int role_parse(const char *text, enum role *ret)
{
	unsigned value;

	if (value_of(roles, COUNT(roles), text, &value) < 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

bool tag_set_has(const struct tag_set *set, const char *tag)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (strcmp(set->tag[i], tag) == 0)
			return true;
	}
	return false;
}

int tag_set_add(struct tag_set *set, const char *tag, struct err *e)
{
	if (!tag_name_valid(tag))
		return err_set(e, -EINVAL,
			"tag \"%.80s\" is not one to %d of A-Z a-z 0-9 . _ - (not beginning with "
			"-; not "
			"none or any)",
			tag, LIMIT_NAME_SIZE - 1);
	if (tag_set_has(set, tag))
		return 0;
	if (set->count >= LIMIT_TAGS_PER_NODE)
		return err_set(e, -E2BIG, "more than %d tags", LIMIT_TAGS_PER_NODE);
	memset(set->tag[set->count], 0, sizeof(set->tag[0]));
	memcpy(set->tag[set->count], tag, strlen(tag));
	set->count++;
	return 0;
}

/* What lies behind the last tag is zero, as sets are compared by their bytes. */
void tag_set_remove(struct tag_set *set, const char *tag)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (strcmp(set->tag[i], tag) != 0)
			continue;
		set->count--;
		memmove(set->tag[i], set->tag[i + 1], (set->count - i) * sizeof(set->tag[0]));
		memset(set->tag[set->count], 0, sizeof(set->tag[0]));
		return;
	}
}

void provider_spec_init(struct provider_spec *s)
{
	*s = (struct provider_spec){
		.share_sessions = true,
		.balance_by_metrics = true,
		.prefer_sharing = true,
		.on_mass_silence = MASS_SILENCE_REFUSE,
		.cpu = {.on = true, .zero = 0, .full = 10000},
		.memory = {.on = true, .zero = 0, .full = 9500},
		.sessions_rule = true,
		.load_script_rule = true,
		.mode = ADMIN_ENABLED,
	};
}

void pool_spec_init(struct pool_spec *s)
{
	*s = (struct pool_spec){.untagged_default = UNTAGGED_NONE, .mode = ADMIN_ENABLED};
}

void node_spec_init(struct node_spec *s)
{
	*s = (struct node_spec){.port = 3389, .load_multiplier = 10000, .mode = ADMIN_ENABLED};
}

void token_spec_init(struct token_spec *s)
{
	*s = (struct token_spec){.role = ROLE_CLIENT};
}

/* SPDX-License-Identifier: ISC */
/* What an administrator sets: words, defaults, sets of tags, and each check with the member it
 * names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/tap.h"
#include "model/spec.h"

START_TEST(words_read_back)
{
	enum admin_mode mode = ADMIN_ENABLED;
	enum mass_silence silence = MASS_SILENCE_REFUSE;
	enum role role = ROLE_AGENT;

	ck_assert_str_eq(admin_mode_name(ADMIN_ENABLED), "enabled");
	ck_assert_str_eq(admin_mode_name(ADMIN_DRAIN), "drain");
	ck_assert_str_eq(admin_mode_name(ADMIN_DISABLED), "disabled");
	ck_assert_int_eq(admin_mode_parse("drain", &mode), 0);
	ck_assert_int_eq(mode, ADMIN_DRAIN);
	ck_assert_int_eq(admin_mode_parse("Drain", &mode), -EINVAL);
	ck_assert_int_eq(admin_mode_parse("", &mode), -EINVAL);
	ck_assert_int_eq(mode, ADMIN_DRAIN); /* untouched */
	ck_assert_str_eq(admin_mode_name((enum admin_mode)7), "unknown");
	for (int m = MASS_SILENCE_REFUSE; m <= MASS_SILENCE_KEEP; m++) {
		ck_assert_int_eq(
			mass_silence_parse(mass_silence_name((enum mass_silence)m), &silence), 0);
		ck_assert_int_eq(silence, m);
	}
	ck_assert_int_eq(mass_silence_parse("maybe", &silence), -EINVAL);
	for (int r = ROLE_AGENT; r <= ROLE_ADMIN; r++) {
		ck_assert_int_eq(role_parse(role_name((enum role)r), &role), 0);
		ck_assert_int_eq(role, r);
	}
	ck_assert_int_eq(role_parse("root", &role), -EINVAL);
}
END_TEST

START_TEST(defaults)
{
	struct provider_spec provider;
	struct pool_spec pool;
	struct node_spec node;
	struct token_spec token;

	provider_spec_init(&provider);
	ck_assert(
		provider.share_sessions && provider.balance_by_metrics && provider.prefer_sharing);
	ck_assert_int_eq(provider.on_mass_silence, MASS_SILENCE_REFUSE);
	ck_assert(provider.cpu.on && provider.memory.on && provider.sessions_rule &&
		  provider.load_script_rule);
	ck_assert_uint_eq(provider.cpu.zero, 0);
	ck_assert_uint_eq(provider.cpu.full, 10000);
	ck_assert_uint_eq(provider.memory.zero, 0);
	ck_assert_uint_eq(provider.memory.full, 9500);
	pool_spec_init(&pool);
	ck_assert_int_eq(pool.untagged_default, UNTAGGED_NONE);
	node_spec_init(&node);
	ck_assert_uint_eq(node.port, 3389);
	ck_assert_uint_eq(node.max_sessions, 0);
	ck_assert_uint_eq(node.load_multiplier, 10000);
	token_spec_init(&token);
	ck_assert_int_eq(token.role, ROLE_CLIENT);
	ck_assert(!token.revoked);
}
END_TEST

START_TEST(sets_of_tags)
{
	static const char *const bad[] = {"", "none", "any", "-gpu", "g;pu", "g,pu", "g pu", "gpu!",
		"gp\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	struct tag_set set = {0};
	struct err e;

	ck_assert_int_eq(tag_set_add(&set, "gpu", &e), 0);
	ck_assert_int_eq(tag_set_add(&set, "gpu", &e), 0);
	ck_assert_uint_eq(set.count, 1);
	ck_assert(tag_set_has(&set, "gpu"));
	ck_assert(!tag_set_has(&set, "GPU"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		e.text[0] = '\0';
		ck_assert_int_eq(tag_set_add(&set, bad[i], &e), -EINVAL);
		ck_assert_ptr_nonnull(strstr(e.text, bad[i]));
	}
	for (int i = 1; i < LIMIT_TAGS_PER_NODE; i++) {
		char tag[8];

		snprintf(tag, sizeof(tag), "t%d", i);
		ck_assert_int_eq(tag_set_add(&set, tag, &e), 0);
	}
	ck_assert_int_eq(tag_set_add(&set, "onemore", &e), -E2BIG);
	ck_assert_int_eq(tag_set_add(&set, "gpu", NULL), 0); /* is there already */
	ck_assert_uint_eq(set.count, LIMIT_TAGS_PER_NODE);
}
END_TEST

START_TEST(a_tag_is_removed)
{
	struct tag_set set = {0}, wanted = {0};
	struct err e;

	ck_assert_int_eq(tag_set_add(&set, "first", &e), 0);
	ck_assert_int_eq(tag_set_add(&set, "middle-one", &e), 0);
	ck_assert_int_eq(tag_set_add(&set, "last", &e), 0);
	tag_set_remove(&set, "none of them");
	ck_assert_uint_eq(set.count, 3);
	tag_set_remove(&set, "middle-one");
	tag_set_remove(&set, "first");
	ck_assert_int_eq(tag_set_add(&wanted, "last", &e), 0);
	ck_assert_mem_eq(&set, &wanted, sizeof(set));
	tag_set_remove(&set, "last");
	ck_assert_mem_eq(&set, &(struct tag_set){0}, sizeof(set));
}
END_TEST

static struct provider_spec provider;
static struct pool_spec pool;
static struct node_spec node;
static struct token_spec token;

static void setup(void)
{
	provider_spec_init(&provider);
	memcpy(provider.name, "p", 2);
	pool_spec_init(&pool);
	memcpy(pool.name, "office", 7);
	node_spec_init(&node);
	memcpy(node.name, "n1", 3);
	memcpy(node.address, "192.0.2.1", 10);
	token_spec_init(&token);
	memcpy(token.name, "portal", 7);
}

/* WHAT is done to a good spec; the check must fail and say SAYS; "" means that it must pass. */
#define checks(kind, what, says)                                                              \
	do {                                                                                  \
		struct err e_ = {""};                                                         \
		int rc_;                                                                      \
		setup();                                                                      \
		what;                                                                         \
		rc_ = kind##_spec_check(&kind, &e_);                                          \
		ck_assert_msg(rc_ == (*(says) ? -EINVAL : 0), #what ": %d %s", rc_, e_.text); \
		ck_assert_msg(strstr(e_.text, says), #what ": %s", e_.text);                  \
	} while (0)

START_TEST(provider_checks)
{
	checks(provider, (void)0, "");
	checks(provider, provider.name[0] = '\0', "name");
	checks(provider, provider.name[0] = '-', "name");
	checks(provider, provider.name[0] = '\n', "name");
	checks(provider, provider.mode = (enum admin_mode)3, "mode");
	checks(provider, provider.mode_reason[0] = '\n', "reason holds");
	checks(provider,
		memcpy(provider.mode_reason,
			"a\xc2\x9b"
			"31m",
			7),
		"reason holds");
	checks(provider, memcpy(provider.mode_reason, "a\xe2\x80\xa8", 5), "reason holds");
	checks(provider, memcpy(provider.mode_reason, "a\xe2\x80\xae", 5), "reason holds");
	checks(provider, memcpy(provider.mode_reason, "\xe2\x81\xa9 b", 6), "reason holds");
	checks(provider,
		memcpy(provider.mode_reason, "\xd0\x9d\xc2\xa0\xe2\x80\x93\xe2\x82\xac", 11), "");
	checks(provider, provider.mode_reason[0] = '\xff', "reason is not UTF-8");
	checks(provider, memset(provider.mode_reason, 'x', sizeof(provider.mode_reason)),
		"reason is not UTF-8");
	checks(provider, provider.cpu.zero = provider.cpu.full, "cpu");
	checks(provider, provider.memory.full = 10001, "memory");
	checks(provider, provider.memory.full = 10000, "");
	checks(provider, provider.on_mass_silence = (enum mass_silence)2, "on_mass_silence");
}
END_TEST

START_TEST(pool_checks)
{
	checks(pool, (void)0, "");
	checks(pool, pool.name[6] = ' ', "name");
	checks(pool, pool.mode = (enum admin_mode) - 1, "mode");
	checks(pool, pool.untagged_default = (enum untagged_default)2, "untagged_default");
	checks(pool, pool.allowed_tags.count = LIMIT_TAGS_PER_NODE + 1, "allowed_tags");
	checks(pool, (pool.allowed_tags.count = 1, memcpy(pool.allowed_tags.tag[0], "a b", 4)),
		"allowed_tags");
}
END_TEST

#define extra(text) snprintf(pool.rdp_extra, sizeof(pool.rdp_extra), "%s", text)

START_TEST(rdp_extra_checks)
{
	checks(pool, extra("redirectclipboard:i:0"), "");
	checks(pool, extra("redirectclipboard:i:0\ndrivestoredirect:s:*\n"), "");
	checks(pool, extra("drivestoredirect:s:"), "");
	checks(pool, extra("redirectclipboard:i:"), "needs a number");
	checks(pool, extra("redirectclipboard:i:1x"), "needs a number");
	checks(pool, extra("redirectclipboard:i:99999999999"), "needs a number");
	checks(pool, extra("redirectclipboard"), "is not key:i:number");
	checks(pool, extra("redirectclipboard:b:00"), "is not key:i:number");
	checks(pool, extra("redirectclipboard:i"), "is not key:i:number");
	checks(pool, extra(":"), "is not key:i:number");
	/* whom a file is for and where it leads is not for a pool to say */
	checks(pool, extra("full address:s:evil.example"), "\"full address\" is not allowed");
	checks(pool, extra("username:s:x"), "not allowed");
	checks(pool, extra("password 51:s:x"), "not allowed");
	checks(pool, extra("loadbalanceinfo:s:x"), "not allowed");
	checks(pool, extra("signature:s:x"), "not allowed");
	checks(pool, extra("gatewayhostname:s:gw.example\nremoteapplicationmode:i:1"), "");
	checks(pool, extra("RedirectClipboard:i:0"), "not allowed");
	checks(pool, extra("redirectclipboard:s:0"), "of type i");
	checks(pool, extra("drivestoredirect:i:0"), "of type s");
	checks(pool, extra("remoteapplicationexpandcmdline:i:0"), "");
	checks(pool, extra("remoteapplicationexpandcmdline:s:0"), "");
	checks(pool, extra("audiomode:i:0\nscreen mode id:i:2\naudiomode:i:1"),
		"\"audiomode\" is there twice");
	checks(pool, extra("audiomode:i:0\n\naudiomode:i:0"), "there twice");
	checks(pool, extra("redirectdrives:i:1\nredirectdirectx:i:1"), "");
	checks(pool, extra("drivestoredirect:s:a\rfull address:s:x"), "control or direction");
	checks(pool, extra("alternate shell:s:a\xc2\x85z"), "control or direction");
	checks(pool, extra("alternate shell:s:a\xe2\x80\xa8z"), "control or direction");
	checks(pool, extra("alternate shell:s:\xd0\x9d\xc2\xa0\xe2\x82\xac"), "");
	checks(pool, extra("drivestoredirect:s:\xff"), "UTF-8");
	checks(pool, memset(pool.rdp_extra, 'x', sizeof(pool.rdp_extra)), "rdp_extra");
}
END_TEST

START_TEST(node_checks)
{
	checks(node, (void)0, "");
	checks(node, node.name[0] = '/', "name");
	checks(node, memset(node.address, 0, 1), "address");
	checks(node, memcpy(node.address, "a b", 4), "address");
	checks(node, memcpy(node.address, "2001:db8::1", 12), "");
	checks(node, memcpy(node.address, "ts1.example.com", 16), "");
	checks(node, memcpy(node.address, "0.0.0.0", 8), "none that a client can connect to");
	checks(node, memcpy(node.address, "224.0.0.1", 10), "none that a client");
	checks(node, memcpy(node.address, "255.255.255.255", 16), "none that a client");
	checks(node, memcpy(node.address, "::", 3), "none that a client");
	checks(node, memcpy(node.address, "ff02::1", 8), "none that a client");
	checks(node, memcpy(node.address, "::ffff:192.0.2.1", 17), "none that a client");
	checks(node, memcpy(node.address, "127.0.0.1", 10), "");
	checks(node, memcpy(node.address, "fe80::1", 8), "");
	checks(node, memcpy(node.fqdn, "ts1.example.com", 16), "");
	checks(node, memcpy(node.fqdn, "ts1;x", 6), "fqdn");
	checks(node, node.port = 0, "port");
	checks(node, node.port = 65535, "");
	checks(node, node.max_sessions = NODE_MAX_SESSIONS, "");
	checks(node, node.max_sessions = NODE_MAX_SESSIONS + 1, "max_sessions");
	checks(node, node.load_multiplier = 0, "load_multiplier");
	checks(node, node.load_multiplier = 1, "");
	checks(node, node.load_multiplier = NODE_MAX_MULTIPLIER, "");
	checks(node, node.load_multiplier = NODE_MAX_MULTIPLIER + 1, "load_multiplier");
	checks(node, (node.tags.count = 1, memcpy(node.tags.tag[0], "a;b", 4)), "tags: \"a;b\"");
	checks(node, node.mode = (enum admin_mode)9, "mode");
}
END_TEST

START_TEST(token_checks)
{
	checks(token, (void)0, "");
	checks(token, token.name[0] = ' ', "name");
	checks(token, token.role = (enum role)4, "role");
	checks(token, token.role = ROLE_AGENT, "needs its node");
	checks(token, (token.role = ROLE_AGENT, token.node_id = 3), "");
	checks(token, token.node_id = 3, "agent's token only");
	checks(token, token.pool_count = LIMIT_TOKEN_POOLS, "");
	checks(token, token.pool_count = LIMIT_TOKEN_POOLS + 1, "pools");
	checks(token, (token.role = ROLE_ADMIN, token.pool_count = 1), "client's token only");
	checks(token, (token.role = ROLE_AUDITOR, token.see_sessions = true),
		"client's token only");
	checks(token, (token.tags.count = 1, memcpy(token.tags.tag[0], "none", 5)), "tags");
	checks(token, token.expires_us = -1, "expires_at");
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("spec");
	TCase *t = tcase_create("spec");

	tcase_add_test(t, words_read_back);
	tcase_add_test(t, defaults);
	tcase_add_test(t, sets_of_tags);
	tcase_add_test(t, a_tag_is_removed);
	tcase_add_test(t, provider_checks);
	tcase_add_test(t, pool_checks);
	tcase_add_test(t, rdp_extra_checks);
	tcase_add_test(t, node_checks);
	tcase_add_test(t, token_checks);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}

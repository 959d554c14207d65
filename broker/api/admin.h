/* SPDX-License-Identifier: ISC */
/*
 * Inside api/: what providers, pools, nodes and tokens have in common for administration. Each is
 * described by one struct admin_kind; admin.c does the rest.
 */
#pragma once

#include "api/fields.h"
#include "api/request.h"
#include "service/service.h"

union admin_spec {
	struct provider_spec provider;
	struct pool_spec pool;
	struct node_spec node;
	struct token_spec token;
	struct {
		uint32_t id;
		char name[LIMIT_NAME_SIZE];
	} common; /* how each of them begins */
};

struct admin_kind {
	const char *path; /* "nodes" */
	const char *word; /* "node" */
	enum store_kind kind;
	const struct field *fields;
	size_t field_count;
	void (*init)(union admin_spec *spec);
	/* The object of NAME, or NULL; and iteration over all. */
	const void *(*find)(const struct fleet *f, const char *name);
	const void *(*next)(const struct fleet *f, const void *prev);
	void (*spec_of)(const void *object, union admin_spec *ret);
	/* What the table cannot tell. */
	int (*check)(const union admin_spec *spec, struct err *e);
	void (*format)(
		struct buf *b, const struct fleet *f, const void *object); /* without braces */
	void (*put)(struct service *s, const struct caller *caller, const union admin_spec *spec,
		const char *changes, service_admin_done *done, void *ctx);
};

const struct admin_kind *admin_provider(void);
const struct admin_kind *admin_pool(void);
const struct admin_kind *admin_node(void);
const struct admin_kind *admin_token(void);

void add_member_mode(struct buf *b, enum admin_mode mode, const char *reason);

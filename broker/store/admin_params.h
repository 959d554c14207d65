/* SPDX-License-Identifier: ISC */
/* The parameters of one prepared statement, in text form, built one by one. */
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/spec.h"
#include "store/statements.h"

#define PARAMS_MAX 20

struct params {
	size_t count;
	const char *values[PARAMS_MAX]; /* borrowed, or into numbers and array */
	char numbers[PARAMS_MAX][24];
	char hash[SECRET_HEX_SIZE];
	struct buf array; /* at most one array a statement */
};

void params_init(struct params *p);
void params_text(struct params *p, const char *value); /* NULL stays null; VALUE outlives P */
void params_bool(struct params *p, bool value);
void params_i64(struct params *p, int64_t value);
void params_id(struct params *p, uint32_t id); /* 0 is null */
void params_ids(struct params *p, const uint32_t *ids, size_t count);
/* The columns of a specification, in the order of its INSERT. */
void params_provider(struct params *p, const struct provider_spec *s);
void params_pool(struct params *p, const struct pool_spec *s);
void params_node(struct params *p, const struct node_spec *s);
void params_token(struct params *p, const struct token_spec *s);
/* Sends and ends P. */
bool params_send(struct params *p, PGconn *conn, enum statement statement);

/* SPDX-License-Identifier: ISC */
/* A provider: a set of nodes balanced together; and a pool: what a client asks for. */
#pragma once

#include <uthash.h>

#include "model/farm.h"
#include "model/spec.h"

struct provider {
	struct provider_spec spec;
	struct farm farm;
	bool mass_silence;          /* more than half fell silent within one stale_after */
	UT_hash_handle by_id, by_name;
};

struct pool {
	struct pool_spec spec;
	struct provider *provider;
	UT_hash_handle by_id, by_name;
};

struct token {
	struct token_spec spec;
	UT_hash_handle by_id, by_hash, by_name;
};

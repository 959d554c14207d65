/* SPDX-License-Identifier: ISC */
/*
 * The nodes of one provider in packed arrays: what policy/choose scans. Slot i of every array is
 * one node; a removed node's slot is filled by the last one. Only model/node.c writes here.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/limits.h"

struct node;

/* Why a node may not take a new user, and what orders it last. */
enum farm_flag {
	FARM_DRAIN = 1u << 0,         /* administrative, of the node itself */
	FARM_DISABLED = 1u << 1,
	FARM_SILENT = 1u << 2,        /* fell silent after having been heard */
	FARM_NEVER_HEARD = 1u << 3,   /* also silent, but no heartbeat ever came */
	FARM_NOT_ACCEPTING = 1u << 4, /* nothing listens on its RDP port */
	FARM_STALE = 1u << 5,         /* heard, but without any usable metric: no index */
	FARM_INDEX_FULL = 1u << 6,    /* reported index is 10000 */
	FARM_CAPACITY_FULL = 1u << 7, /* sessions >= max_sessions */
	FARM_TAGGED = 1u << 8,        /* has at least one tag */
	FARM_UNHEARD_SINCE_START = 1u << 9, /* numbers are from the database: last in the order */
	FARM_SUSPECT = 1u << 10,      /* took users and let them not in: last in the order */
};

/* Sixteen bits a word: vector code takes eight nodes at once, and a request reads only the words that
 * hold its tags. */
#define FARM_TAG_BITS 16
#define FARM_TAG_WORDS 16
#define FARM_TAGS_MAX (FARM_TAG_WORDS * FARM_TAG_BITS) /* distinct tags in one provider */
#define FARM_SEQ_MAX ((1u << 29) - 1)

struct farm {
	uint32_t count, cap;
	uint16_t *flags;    /* enum farm_flag */
	uint16_t *index;    /* load index, slv; LOAD_INDEX_MAX when there is none */
	uint32_t *heard_s;  /* monotonic seconds of the last heartbeat here */
	uint16_t *tags;     /* tag_words planes of cap words; bit = position in tag_names */
	uint32_t *assigned; /* round robin: sequence of the last assignment, 0 = never */
	struct node **nodes;
	uint32_t tag_words; /* 1..FARM_TAG_WORDS */
	uint32_t tag_count;
	char (*tag_names)[LIMIT_NAME_SIZE]; /* grows up to FARM_TAGS_MAX; names of gone tags are reused */
	uint32_t *tag_users;                /* nodes that have the tag */
	uint32_t assign_seq; /* 0..FARM_SEQ_MAX */
};

/* Word W of the tag bits of SLOT. */
static inline uint16_t farm_tag_word(const struct farm *f, uint32_t slot, uint32_t w)
{
	return f->tags[(size_t)w * f->cap + slot];
}

/* The bit of TAG, or -ENOENT when no node of the farm has it. */
int farm_find_tag(const struct farm *f, const char *tag);

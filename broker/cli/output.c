/* SPDX-License-Identifier: ISC */
/*
 * Tables by libsmartcols, which fits them to the terminal and shows control characters as \xNN.
 * JSON is what the API said. CSV has the members' own names and values, untouched by what suits
 * people.
 */
#include "cli/output.h"

#include <errno.h>
#include <libsmartcols.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/api_call.h"
#include "cli/csv.h"

#define CELL_MAX 65536
#define COLUMNS_MAX 32
#define WIDE 100
#define RECORD_MAX (4u * 1024 * 1024)

static int no_memory(struct failure *f)
{
	return fail(f, CLI_FAILED, "out of memory");
}

int output_json(struct json_object *o, struct failure *f)
{
	const char *text = json_object_to_json_string_ext(o,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (!text)
		return no_memory(f);
	puts(text);
	return 0;
}

void output_text(FILE *to, const char *text)
{
	size_t left = strlen(text), n;

	for (; left > 0; text += n, left -= n) {
		unsigned char first = (unsigned char)text[0];
		bool c1 = first == 0xc2 && left > 1 && (unsigned char)text[1] < 0xa0;

		n = text_utf8_length(text, left);
		if (n == 0 || (first < ' ' && first != '\n') || first == 0x7f || c1) {
			n = 1;
			fprintf(to, "\\x%02X", first);
		} else {
			fwrite(text, 1, n, to);
		}
	}
}

int output_finish(struct failure *f)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return fail(f, CLI_FAILED, "could not write the output: %s", strerror(errno));
}

/* ---- tables ---- */

static bool any_has(struct json_object *items, const struct field *f)
{
	bool any = false;
	struct buf cell = BUF_INIT(CELL_MAX);

	for (size_t i = 0; !any && i < json_object_array_length(items); i++) {
		buf_reset(&cell);
		field_text(json_object_array_get_idx(items, i), f, true, 0, &cell);
		any = cell.len > 0;
	}
	buf_deinit(&cell);
	return any;
}

/* Whether TABLE, of ITEMS, has the column. */
static bool shown(struct libscols_table *table, struct json_object *items, const struct field *f)
{
	bool narrow = isatty(STDOUT_FILENO) && scols_table_get_termwidth(table) < WIDE;

	return !(f->flags & FIELD_ONLY_CSV) && !(narrow && (f->flags & FIELD_IF_WIDE)) &&
	       (!(f->flags & FIELD_IF_ANY) || any_has(items, f));
}

/* FIELDS of the columns go to RET_SHOWN. */
static int new_table(struct json_object *items, const struct field *fields,
	struct libscols_table **ret, const struct field *ret_shown[COLUMNS_MAX])
{
	struct libscols_table *table = scols_new_table();
	size_t n = 0;

	if (!table)
		return -ENOMEM;
	for (const struct field *f = fields; f->path && n < COLUMNS_MAX - 1; f++) {
		int flags = (f->flags & FIELD_RIGHT ? SCOLS_FL_RIGHT : 0) |
			    (f->flags & FIELD_WRAP ? SCOLS_FL_WRAP : 0);

		if (!shown(table, items, f))
			continue;
		if (!scols_table_new_column(
			    table, f->title, f->flags & FIELD_WRAP ? 0.1 : 0, flags)) {
			scols_unref_table(table);
			return -ENOMEM;
		}
		ret_shown[n++] = f;
	}
	ret_shown[n] = NULL;
	*ret = table;
	return 0;
}

static int add_line(struct libscols_table *table, struct json_object *item,
	const struct field *const *fields, int64_t now_us, struct buf *cell)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);

	if (!line)
		return -ENOMEM;
	for (size_t column = 0; fields[column]; column++) {
		buf_reset(cell);
		field_text(item, fields[column], false, now_us, cell);
		if (scols_line_set_data(line, column, buf_str(cell)) < 0)
			return -ENOMEM;
	}
	return 0;
}

int output_table(struct json_object *items, const struct field *fields, struct failure *f)
{
	const struct field *columns[COLUMNS_MAX];
	struct buf cell = BUF_INIT(CELL_MAX);
	struct libscols_table *table = NULL;
	int64_t now_us = clock_wall_us();
	int r = new_table(items, fields, &table, columns);

	for (size_t i = 0; r == 0 && i < json_object_array_length(items); i++)
		r = add_line(table, json_object_array_get_idx(items, i), columns, now_us, &cell);
	if (r == 0)
		r = scols_print_table(table);
	scols_unref_table(table);
	buf_deinit(&cell);
	return r == 0 ? 0 : no_memory(f);
}

/* ---- CSV ---- */

static int print_record(struct buf *record, struct failure *f)
{
	csv_end(record);
	if (buf_error(record))
		return no_memory(f);
	fwrite(buf_str(record), 1, record->len, stdout);
	buf_reset(record);
	return 0;
}

static int print_csv(struct json_object *items, const struct field *fields, struct failure *failure)
{
	struct buf record = BUF_INIT(RECORD_MAX), cell = BUF_INIT(RECORD_MAX);
	bool first = true;
	int r;

	for (const struct field *f = fields; f->path; f++) {
		if (f->flags & FIELD_NO_CSV)
			continue;
		csv_field(&record, first, f->path);
		first = false;
	}
	r = print_record(&record, failure);
	for (size_t i = 0; r == 0 && i < json_object_array_length(items); i++) {
		first = true;
		for (const struct field *f = fields; f->path; f++) {
			if (f->flags & FIELD_NO_CSV)
				continue;
			buf_reset(&cell);
			field_text(json_object_array_get_idx(items, i), f, true, 0, &cell);
			csv_field(&record, first, buf_str(&cell));
			first = false;
		}
		r = print_record(&record, failure);
	}
	buf_deinit(&record);
	buf_deinit(&cell);
	return r;
}

int output_list(
	struct cli *c, struct json_object *answer, const struct field *fields, struct failure *f)
{
	struct json_object *items = NULL;
	int r;

	if (c->format == FORMAT_JSON)
		return output_json(answer, f);
	r = api_items(answer, &items, f);
	if (r != 0)
		return r;
	if (json_object_get_boolean(field_find(answer, "truncated")))
		fputs("termbroker: there are more than these\n", stderr);
	if (c->format == FORMAT_CSV)
		return print_csv(items, fields, f);
	if (json_object_array_length(items) == 0)
		fputs("none\n", stderr);
	return output_table(items, fields, f);
}

/* ---- one object ---- */

/* Calls ADD for each member that is no object; of those within with "outer.inner". */
typedef int member_callback(void *ctx, const char *name, struct json_object *v);

static int each_member(struct json_object *o, const char *prefix, member_callback *add, void *ctx)
{
	struct buf name = BUF_INIT(1024);
	int r = 0;

	json_object_object_foreach(o, key, v)
	{
		if (r != 0)
			break;
		buf_reset(&name);
		buf_addf(&name, "%s%s%s", prefix, *prefix ? "." : "", key);
		if (buf_error(&name))
			r = -ENOMEM;
		else if (json_object_is_type(v, json_type_object) && strlen(prefix) < 128)
			r = each_member(v, buf_str(&name), add, ctx);
		else
			r = add(ctx, buf_str(&name), v);
	}
	buf_deinit(&name);
	return r;
}

struct lines {
	struct libscols_table *table;
	struct buf cell;
	int64_t now_us;
};

static int add_member(void *ctx, const char *name, struct json_object *v)
{
	struct lines *l = ctx;
	struct libscols_line *line = scols_table_new_line(l->table, NULL);

	if (!line)
		return -ENOMEM;
	buf_reset(&l->cell);
	field_named_value(name, v, l->now_us, &l->cell);
	if (scols_line_set_data(line, 0, name) < 0 ||
		scols_line_set_data(line, 1, buf_str(&l->cell)) < 0)
		return -ENOMEM;
	return 0;
}

static int print_lines(struct json_object *o, struct failure *f)
{
	struct lines l = {
		.table = scols_new_table(), .cell = BUF_INIT(CELL_MAX), .now_us = clock_wall_us()};
	int r = -ENOMEM;

	if (l.table && scols_table_new_column(l.table, "FIELD", 0, 0) &&
		scols_table_new_column(l.table, "VALUE", 0.5, SCOLS_FL_WRAP)) {
		scols_table_enable_noheadings(l.table, 1);
		r = each_member(o, "", add_member, &l);
	}
	if (r == 0)
		r = scols_print_table(l.table);
	scols_unref_table(l.table);
	buf_deinit(&l.cell);
	return r == 0 ? 0 : no_memory(f);
}

struct record {
	struct buf names, values, cell;
};

static int add_cell(void *ctx, const char *name, struct json_object *v)
{
	struct record *r = ctx;
	bool first = r->names.len == 0;

	csv_field(&r->names, first, name);
	buf_reset(&r->cell);
	field_value(v, true, &r->cell);
	csv_field(&r->values, first, buf_str(&r->cell));
	return 0;
}

static int print_record_of(struct json_object *o, struct failure *f)
{
	struct record record = {.names = BUF_INIT(RECORD_MAX),
		.values = BUF_INIT(RECORD_MAX),
		.cell = BUF_INIT(RECORD_MAX)};
	int r = each_member(o, "", add_cell, &record) == 0 ? 0 : no_memory(f);

	if (r == 0)
		r = print_record(&record.names, f);
	if (r == 0)
		r = print_record(&record.values, f);
	buf_deinit(&record.names);
	buf_deinit(&record.values);
	buf_deinit(&record.cell);
	return r;
}

int output_object(struct cli *c, struct json_object *o, struct failure *f)
{
	if (c->format == FORMAT_JSON)
		return output_json(o, f);
	if (!json_object_is_type(o, json_type_object))
		return fail(f, CLI_FAILED, "the answer is not an object");
	return c->format == FORMAT_CSV ? print_record_of(o, f) : print_lines(o, f);
}

/* SPDX-License-Identifier: ISC */
/* The parts of store/ that need no server: array literals, words of errors, connection strings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/array.h"
#include "store/sqlstate.h"
#include "store/targets.h"
#include "tap.h"

START_TEST(array_items_are_quoted)
{
	struct buf b = BUF_INIT(1000);

	array_begin(&b);
	array_end(&b);
	ck_assert_str_eq(buf_str(&b), "{}");
	array_begin(&b);
	array_text(&b, "NULL");
	array_text(&b, NULL);
	array_text(&b, "");
	array_text(&b, "a\"b\\c,{}");
	array_end(&b);
	ck_assert_str_eq(buf_str(&b), "{\"NULL\",NULL,\"\",\"a\\\"b\\\\c,{}\"}");
	array_begin(&b);
	array_u64(&b, UINT64_MAX);
	array_i64(&b, INT64_MIN);
	array_bool(&b, true);
	array_null(&b);
	array_end(&b);
	ck_assert_str_eq(buf_str(&b), "{18446744073709551615,-9223372036854775808,t,NULL}");
	buf_deinit(&b);
}
END_TEST

static void expect_text(const char *text, const char *sqlstate, const char *message)
{
	char state[6];
	struct err e;

	fault_from_text(text, state, &e);
	ck_assert_str_eq(state, sqlstate);
	ck_assert_str_eq(e.text, message);
}

START_TEST(connection_messages)
{
	expect_text("connection to server on socket \"/x\" failed: FATAL:  3D000: database \"x\" "
		    "does not exist\n"
		    "LOCATION:  InitPostgres, postinit.c:900\n",
		"3D000",
		"connection to server on socket \"/x\" failed: FATAL:  database \"x\" does not "
		"exist");
	expect_text("connection failed: Connection refused\n\tIs the server running?\n", "",
		"connection failed: Connection refused");
	expect_text(
		"FATAL:  3d000: lower case is no code", "", "FATAL:  3d000: lower case is no code");
	expect_text("FATAL:  3D000", "", "FATAL:  3D000");
	expect_text("", "", "");
}
END_TEST

START_TEST(codes)
{
	ck_assert_int_eq(fault_kind_of("23505"), FAULT_ROW);
	ck_assert_int_eq(fault_kind_of("22021"), FAULT_ROW);
	ck_assert_int_eq(fault_kind_of("40P01"), FAULT_RETRY);
	ck_assert_int_eq(fault_kind_of("25006"), FAULT_LOST);
	ck_assert_int_eq(fault_kind_of("53100"), FAULT_LOST);
	ck_assert_int_eq(fault_kind_of(""), FAULT_LOST);
	ck_assert(fault_is_unusable("3D000") && fault_is_unusable("28P01") &&
		  fault_is_unusable("42501"));
	ck_assert(!fault_is_unusable("53300") && !fault_is_unusable("57P03") &&
		  !fault_is_unusable(""));
	ck_assert_int_eq(fault_result("23505"), -EEXIST);
	ck_assert_int_eq(fault_result("23514"), -EINVAL);
	ck_assert_int_eq(fault_result("57014"), -ETIMEDOUT);
	ck_assert_int_eq(fault_result("57P01"), -ENOTCONN);
	ck_assert_int_eq(fault_result("XX000"), -EIO);
}
END_TEST

START_TEST(hosts_are_taken_apart)
{
	struct targets t;
	struct err e;

	ck_assert_int_eq(
		targets_parse("host=a,/s,,@x hostaddr=,,192.0.2.1, port=1,,3,4", &t, &e), 0);
	ck_assert_uint_eq(t.count, 4);
	ck_assert(target_needs_name(&t.list[0]) && !target_needs_name(&t.list[1]));
	ck_assert(!target_needs_name(&t.list[2]) && !target_needs_name(&t.list[3]));
	ck_assert_str_eq(t.list[0].port, "1");
	ck_assert_ptr_null(t.list[1].port);
	ck_assert_str_eq(t.list[2].hostaddr, "192.0.2.1");
	targets_deinit(&t);
	ck_assert_int_eq(targets_parse("postgresql://u:p@h1:1,h2:2/db", &t, &e), 0);
	ck_assert_uint_eq(t.count, 2);
	ck_assert_str_eq(t.list[1].host, "h2");
	ck_assert_str_eq(t.list[1].port, "2");
	targets_deinit(&t);
	ck_assert_int_eq(targets_parse("host=a,b port=7", &t, &e), 0);
	ck_assert_str_eq(t.list[1].port, "7");
	targets_deinit(&t);
	unsetenv("PGHOST");
	unsetenv("PGPORT");
	ck_assert_int_eq(targets_parse("", &t, &e), 0);
	ck_assert_uint_eq(t.count, 1);
	ck_assert_ptr_null(t.list[0].host);
	targets_deinit(&t);
	ck_assert_int_eq(targets_parse("host=a,b hostaddr=192.0.2.1", &t, &e), -EINVAL);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("parts");
	TCase *t = tcase_create("parts");

	tcase_add_test(t, array_items_are_quoted);
	tcase_add_test(t, connection_messages);
	tcase_add_test(t, codes);
	tcase_add_test(t, hosts_are_taken_apart);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}

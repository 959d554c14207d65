/* SPDX-License-Identifier: ISC */
/* What a balancer is told: every case in a line of the table. */
#include "agent/agent_check.h"

#include "lib/tap.h"

static const struct {
	struct check_facts facts;
	const char *line;
} cases[] = {
	{{.accepting = false, .answered = true, .has_load_index = true},
		"ready down #nothing listens on the RDP port\n"},
	{{.accepting = true, .answered = true, .maintenance = true, .has_load_index = true},
		"drain up #takes no new users\n"},
	{{.accepting = true, .answered = true, .has_load_index = true, .load_index = 10000},
		"drain up #full\n"},
	{{.accepting = true, .answered = true, .has_load_index = true, .load_index = 9999},
		"ready up 1%\n"},
	{{.accepting = true, .answered = true, .has_load_index = true, .load_index = 2500},
		"ready up 75%\n"},
	{{.accepting = true, .answered = true, .has_load_index = true, .load_index = 0},
		"ready up 100%\n"},
	{{.accepting = true, .answered = true}, "ready up 1% #no metrics\n"},
	/* the dispatcher's words are too old to count */
	{{.accepting = true,
		 .maintenance = true,
		 .has_load_index = true,
		 .load_index = 10000,
		 .has_busy = true,
		 .busy = 4000},
		"ready up 60% #no dispatcher answers\n"},
	{{.accepting = true, .has_busy = true, .busy = 10000},
		"ready up 1% #no dispatcher answers\n"},
	{{.accepting = true}, "ready up 50% #no dispatcher answers\n"},
	{{.accepting = false}, "ready down #nothing listens on the RDP port\n"},
};

START_TEST(lines)
{
	struct buf out = BUF_INIT(256);

	check_format(&cases[_i].facts, &out);
	ck_assert_str_eq(buf_str(&out), cases[_i].line);
	buf_deinit(&out);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("agent_check");
	TCase *t = tcase_create("agent_check");

	tcase_add_loop_test(t, lines, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}

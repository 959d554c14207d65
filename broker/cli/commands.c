/* SPDX-License-Identifier: ISC */
/* The table of commands. An option that means the same everywhere is defined once. */
#include "cli/command.h"

#include <string.h>

#include "cli/run.h"

#define MODES "enabled|drain|disabled"
#define ROLES "agent|client|auditor|admin"

/* ---- everywhere ---- */
static const struct option_def opt_output = {.name = "output",
	.letter = 'o',
	.type = OPTION_CHOICE,
	.value = "FORMAT",
	.choices = "table|json|csv",
	.help = "how to print: table, json or csv"};
static const struct option_def opt_socket = {.name = "socket",
	.type = OPTION_TEXT,
	.value = "PATH",
	.names = "FILE",
	.help = "admin socket of the dispatcher (/run/termbroker/admin.sock)"};
static const struct option_def opt_url = {.name = "url",
	.type = OPTION_TEXT,
	.value = "URL",
	.help = "https://HOST:PORT of a dispatcher, instead of the socket"};
static const struct option_def opt_ca = {.name = "ca",
	.type = OPTION_TEXT,
	.value = "FILE",
	.names = "FILE",
	.help = "with --url: certificates to trust, PEM"};
static const struct option_def opt_pin = {.name = "pin",
	.type = OPTION_TEXT,
	.value = "PIN",
	.help = "with --url: the dispatcher's public key, sha256//…"};
static const struct option_def opt_token_file = {.name = "token-file",
	.type = OPTION_TEXT,
	.value = "FILE",
	.names = "FILE",
	.help = "with --url: file that holds the token"};
static const struct option_def opt_help = {
	.name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "this text"};
static const struct option_def opt_version = {
	.name = "version", .type = OPTION_FLAG, .help = "print the version"};

static const struct option_def *const global_options[] = {&opt_output, &opt_socket, &opt_url,
	&opt_ca, &opt_pin, &opt_token_file, &opt_help, &opt_version, NULL};

/* ---- of some ---- */
static const struct option_def opt_force = {
	.name = "force", .type = OPTION_FLAG, .help = "also if it has sessions"};
static const struct option_def opt_reason = {.name = "reason",
	.type = OPTION_TEXT,
	.value = "TEXT",
	.help = "why; shown to whoever asks"};
static const struct option_def opt_provider = {.name = "provider",
	.type = OPTION_TEXT,
	.value = "PROVIDER",
	.names = "provider",
	.member = "provider",
	.help = "the provider it belongs to"};

static const struct option_def opt_share = {.name = "share-sessions",
	.type = OPTION_ON_OFF,
	.value = "on|off",
	.choices = "on|off",
	.member = "share_sessions",
	.help = "a user with a live session returns to its node"};
static const struct option_def opt_balance = {.name = "balance-by-metrics",
	.type = OPTION_ON_OFF,
	.value = "on|off",
	.choices = "on|off",
	.member = "balance_by_metrics",
	.help = "new users go to the least loaded node; off: in turn"};
static const struct option_def opt_prefer = {.name = "prefer-sharing",
	.type = OPTION_ON_OFF,
	.value = "on|off",
	.choices = "on|off",
	.member = "prefer_sharing",
	.help = "a live session comes before balancing"};
static const struct option_def opt_silence = {.name = "on-mass-silence",
	.type = OPTION_CHOICE,
	.value = "refuse|keep",
	.choices = "refuse|keep",
	.member = "on_mass_silence",
	.help = "what to do when most nodes fall silent at once"};

#define RULE(letters, key, words)                                                    \
	{                                                                            \
		.name = (letters), .type = OPTION_RULE, .value = "on|off|ZERO-FULL", \
		.choices = "on|off", .member = (key), .help = (words)                \
	}
#define RULE_SWITCH(letters, key, words)                                                        \
	{                                                                                       \
		.name = (letters), .type = OPTION_RULE, .value = "on|off", .choices = "on|off", \
		.max = 1, .member = (key), .help = (words)                                      \
	}
static const struct option_def opt_rule_cpu =
	RULE("cpu-rule", "cpu", "CPU counts; from ZERO to FULL per cent busy (0-100)");
static const struct option_def opt_rule_memory =
	RULE("memory-rule", "memory", "memory counts; from ZERO to FULL per cent used (0-95)");
static const struct option_def opt_rule_sessions =
	RULE_SWITCH("sessions-rule", "sessions", "sessions count, up to the node's max_sessions");
static const struct option_def opt_rule_script =
	RULE_SWITCH("script-rule", "load_script", "what a load script reports counts");

static const struct option_def opt_default_tags = {.name = "default-tags",
	.type = OPTION_TEXT,
	.value = "TAGS",
	.member = "default_tags",
	.help = "tags to use when none are asked for"};
static const struct option_def opt_forced_tags = {.name = "forced-tags",
	.type = OPTION_TEXT,
	.value = "TAGS",
	.member = "forced_tags",
	.help = "tags that a node must match always"};
static const struct option_def opt_allowed_tag = {.name = "allowed-tag",
	.type = OPTION_LIST,
	.value = "TAG",
	.member = "allowed_tags",
	.help = "tag that may be asked for (repeat; '' = all)"};
static const struct option_def opt_untagged = {.name = "untagged-default",
	.type = OPTION_CHOICE,
	.value = "untagged|any",
	.choices = "untagged|any",
	.member = "untagged_default",
	.help = "what no tags mean: untagged nodes, or every node"};
static const struct option_def opt_rdp_extra = {.name = "rdp-extra",
	.type = OPTION_LINES,
	.value = "LINE",
	.member = "rdp_extra",
	.help = "line for its .rdp files, key:type:value (repeat)"};

static const struct option_def opt_address = {.name = "address",
	.type = OPTION_TEXT,
	.value = "ADDRESS",
	.member = "address",
	.help = "IP address or host name that clients reach"};
static const struct option_def opt_port = {.name = "port",
	.type = OPTION_UINT,
	.value = "PORT",
	.member = "port",
	.min = 1,
	.max = 65535,
	.help = "RDP port (3389)"};
static const struct option_def opt_fqdn = {.name = "fqdn",
	.type = OPTION_TEXT,
	.value = "NAME",
	.member = "fqdn",
	.help = "full host name, if clients should use it"};
static const struct option_def opt_add_tag = {.name = "tag",
	.type = OPTION_LIST,
	.value = "TAG",
	.member = "tags",
	.help = "tag of the node (repeat)"};
static const struct option_def opt_set_tag = {.name = "tag",
	.type = OPTION_LIST,
	.value = "TAG",
	.member = "tags",
	.help = "+TAG adds, -TAG removes, TAG… replaces all, '' = none (repeat)"};
static const struct option_def opt_max_sessions = {.name = "max-sessions",
	.type = OPTION_UINT,
	.value = "N",
	.member = "max_sessions",
	.max = 1000000,
	.help = "takes no new user at so many sessions (0 = no limit)"};
static const struct option_def opt_multiplier = {.name = "load-multiplier",
	.type = OPTION_NUMBER,
	.value = "M",
	.member = "load_multiplier",
	.help = "makes its load count more or less (1.0)"};

static const struct option_def opt_tags = {.name = "tags",
	.type = OPTION_TEXT,
	.value = "TAGS",
	.member = "tags",
	.help = "tag request, such as 'gpu', 'gpu,-east' or 'gpu!'"};
static const struct option_def opt_node = {.name = "node",
	.type = OPTION_TEXT,
	.value = "NODE",
	.names = "node",
	.member = "node",
	.help = "this node and no other (administrators)"};
static const struct option_def opt_rdp = {.name = "rdp",
	.type = OPTION_TEXT,
	.value = "FILE",
	.names = "FILE",
	.help = "write an .rdp file (- = standard output)"};

static const struct option_def opt_of_node = {.name = "node",
	.type = OPTION_TEXT,
	.value = "NODE",
	.names = "node",
	.help = "only of this node"};
static const struct option_def opt_of_user = {
	.name = "user", .type = OPTION_TEXT, .value = "USER", .help = "only of this user"};
static const struct option_def opt_of_pool = {.name = "pool",
	.type = OPTION_TEXT,
	.value = "POOL",
	.names = "pool",
	.help = "only of this pool"};
static const struct option_def opt_state = {.name = "state",
	.type = OPTION_CHOICE,
	.value = "active|disconnected",
	.choices = "active|disconnected",
	.help = "only in this state"};

static const struct option_def opt_follow = {.name = "follow",
	.letter = 'f',
	.type = OPTION_FLAG,
	.help = "go on with what happens from now on"};
static const struct option_def opt_level = {.name = "level",
	.type = OPTION_CHOICE,
	.value = "LEVEL",
	.choices = "debug|info|warning|error",
	.help = "least level (debug)"};
static const struct option_def opt_lang = {.name = "lang",
	.type = OPTION_CHOICE,
	.value = "en|ru",
	.choices = "en|ru",
	.help = "language of the texts (by the locale)"};
static const struct option_def opt_count = {.name = "lines",
	.letter = 'n',
	.type = OPTION_UINT,
	.value = "COUNT",
	.max = 1000,
	.help = "so many of the newest (20)"};

static const struct option_def opt_role = {.name = "role",
	.type = OPTION_CHOICE,
	.value = "ROLE",
	.choices = ROLES,
	.member = "role",
	.help = "agent, client, auditor or admin"};
static const struct option_def opt_token_node = {.name = "node",
	.type = OPTION_TEXT,
	.value = "NODE",
	.names = "node",
	.member = "node",
	.help = "agents: the node it is for"};
static const struct option_def opt_token_pool = {.name = "pool",
	.type = OPTION_LIST,
	.value = "POOL",
	.names = "pool",
	.member = "pools",
	.help = "clients: pool that may be asked for (repeat)"};
static const struct option_def opt_token_tag = {.name = "tag",
	.type = OPTION_LIST,
	.value = "TAG",
	.member = "tags",
	.help = "clients: tag that may be asked for (repeat)"};
static const struct option_def opt_see = {.name = "see-sessions",
	.type = OPTION_ON_OFF,
	.value = "on|off",
	.choices = "on|off",
	.member = "see_sessions",
	.help = "clients: answers tell about the session"};
static const struct option_def opt_expires = {.name = "expires",
	.type = OPTION_WHEN,
	.value = "WHEN",
	.member = "expires_at",
	.help = "30d, 12h, a time such as 2027-01-31T00:00:00Z, or never"};

static const struct option_def opt_config = {.name = "config",
	.type = OPTION_TEXT,
	.value = "FILE",
	.names = "FILE",
	.help = "configuration of the dispatcher"};

#define LIST_SHOW_REMOVE_MAINTENANCE(n, plural)                                                 \
	{.noun = (n),                                                                           \
		.verb = "list",                                                                 \
		.role = "auditor",                                                              \
		.summary = "list the " plural,                                                  \
		.run = run_kind_list},                                                          \
		{.noun = (n),                                                                   \
			.verb = "show",                                                         \
			.args = {{"NAME", (n), NULL}},                                          \
			.role = "auditor",                                                      \
			.summary = "show everything about one",                                 \
			.run = run_kind_show},                                                  \
		{.noun = (n),                                                                   \
			.verb = "remove",                                                       \
			.args = {{"NAME", (n), NULL}},                                          \
			.options = {&opt_force},                                                \
			.role = "admin",                                                        \
			.summary = "remove one",                                                \
			.run = run_kind_remove},                                                \
	{                                                                                       \
		.noun = (n), .verb = "maintenance",                                             \
		.args = {{"NAME", (n), NULL}, {"MODE", NULL, MODES}}, .options = {&opt_reason}, \
		.role = "admin", .summary = "enable, drain or disable one",                     \
		.detail = "MODE is enabled, drain (no new users; sessions go on and may be "    \
			  "reconnected)\nor disabled. drain and disabled need a --reason.",     \
		.run = run_kind_maintenance                                                     \
	}

static const struct command commands[] = {
	{.noun = "status",
		.role = "auditor",
		.summary = "how the dispatcher and its fleet are doing",
		.run = run_status},

	LIST_SHOW_REMOVE_MAINTENANCE("provider", "providers"),
	{.noun = "provider",
		.verb = "add",
		.args = {{"NAME", NULL, NULL}},
		.options = {&opt_share, &opt_balance, &opt_prefer, &opt_silence, &opt_rule_cpu,
			&opt_rule_memory, &opt_rule_sessions, &opt_rule_script},
		.role = "admin",
		.summary = "make a provider",
		.run = run_kind_add},
	{.noun = "provider",
		.verb = "set",
		.args = {{"NAME", "provider", NULL}},
		.options = {&opt_share, &opt_balance, &opt_prefer, &opt_silence, &opt_rule_cpu,
			&opt_rule_memory, &opt_rule_sessions, &opt_rule_script},
		.role = "admin",
		.summary = "change a provider",
		.run = run_kind_set},

	LIST_SHOW_REMOVE_MAINTENANCE("pool", "pools"),
	{.noun = "pool",
		.verb = "add",
		.args = {{"NAME", NULL, NULL}},
		.options = {&opt_provider, &opt_default_tags, &opt_forced_tags, &opt_allowed_tag,
			&opt_untagged, &opt_rdp_extra},
		.required = 1,
		.role = "admin",
		.summary = "make a pool",
		.run = run_kind_add},
	{.noun = "pool",
		.verb = "set",
		.args = {{"NAME", "pool", NULL}},
		.options = {&opt_provider, &opt_default_tags, &opt_forced_tags, &opt_allowed_tag,
			&opt_untagged, &opt_rdp_extra},
		.role = "admin",
		.summary = "change a pool",
		.run = run_kind_set},

	LIST_SHOW_REMOVE_MAINTENANCE("node", "nodes"),
	{.noun = "node",
		.verb = "add",
		.args = {{"NAME", NULL, NULL}},
		.options = {&opt_provider, &opt_address, &opt_port, &opt_fqdn, &opt_add_tag,
			&opt_max_sessions, &opt_multiplier},
		.required = 2,
		.role = "admin",
		.summary = "register a node; prints its agent's token once",
		.detail = "Also prints what to type on the node to start its agent.",
		.run = run_node_add},
	{.noun = "node",
		.verb = "set",
		.args = {{"NAME", "node", NULL}},
		.options = {&opt_provider, &opt_address, &opt_port, &opt_fqdn, &opt_set_tag,
			&opt_max_sessions, &opt_multiplier},
		.role = "admin",
		.summary = "change a node",
		.run = run_node_set},

	{.noun = "session",
		.verb = "list",
		.options = {&opt_of_node, &opt_of_user, &opt_of_pool, &opt_state},
		.role = "auditor",
		.summary = "list the sessions on the nodes",
		.run = run_session_list},
	{.noun = "session",
		.verb = "forget",
		.args = {{"ID", "session", NULL}},
		.role = "admin",
		.summary = "strike a session of a dead node off the records",
		.detail = "ID is NODE:SESSION, as \"session list\" shows it. The session itself is "
			  "not "
			  "touched.",
		.run = run_session_forget},

	{.noun = "connect",
		.args = {{"POOL", "pool", NULL}, {"USER", NULL, NULL}},
		.options = {&opt_tags, &opt_node, &opt_rdp},
		.role = "client",
		.summary = "ask for a node for a user, as a client does",
		.run = run_connect},
	{.noun = "explain",
		.args = {{"POOL", "pool", NULL}, {"USER", NULL, NULL}},
		.options = {&opt_tags, &opt_node},
		.role = "auditor",
		.summary = "tell which node a user would get, and why",
		.run = run_explain},
	{.noun = "log",
		.options = {&opt_follow, &opt_of_pool, &opt_level, &opt_lang, &opt_count},
		.role = "auditor",
		.summary = "read the journal",
		.run = run_log},

	{.noun = "token",
		.verb = "list",
		.role = "auditor",
		.summary = "list the tokens (never their text)",
		.run = run_kind_list},
	{.noun = "token",
		.verb = "add",
		.args = {{"NAME", NULL, NULL}},
		.options = {&opt_role, &opt_token_node, &opt_token_pool, &opt_token_tag, &opt_see,
			&opt_expires},
		.required = 1,
		.role = "admin",
		.summary = "make a token; prints it once",
		.run = run_token_add},
	{.noun = "token",
		.verb = "revoke",
		.args = {{"NAME", "token", NULL}},
		.role = "admin",
		.summary = "make a token useless at once",
		.run = run_token_revoke},

	{.noun = "db",
		.verb = "migrate",
		.options = {&opt_config},
		.summary = "bring the database to this version's schema",
		.detail = "Runs termbrokerd --migrate on this machine. Safe to run twice.",
		.run = run_db_migrate},
};

const struct command *command_at(size_t at)
{
	return at < sizeof(commands) / sizeof(commands[0]) ? &commands[at] : NULL;
}

const struct option_def *const *command_global_options(void)
{
	return global_options;
}

const struct command *command_find(const char *noun, const char *verb)
{
	const struct command *c;

	for (size_t i = 0; (c = command_at(i)); i++) {
		if (strcmp(c->noun, noun) != 0)
			continue;
		if (verb ? c->verb && strcmp(c->verb, verb) == 0 : !c->verb)
			return c;
	}
	return NULL;
}

bool command_noun_known(const char *noun)
{
	for (size_t i = 0; command_at(i); i++)
		if (strcmp(command_at(i)->noun, noun) == 0)
			return true;
	return false;
}

bool command_choice_valid(const char *choices, const char *word)
{
	size_t len = strlen(word);

	if (strchr(word, '|'))
		return false;
	for (const char *p = choices; len > 0 && p; p = strchr(p, '|')) {
		p += *p == '|';
		if (strncmp(p, word, len) == 0 && (p[len] == '|' || p[len] == '\0'))
			return true;
	}
	return false;
}

# SPDX-License-Identifier: ISC
"""Start to ready with a large fleet in the database, and the memory that a session costs."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Suite
from harness.broker import Broker

NODES, SESSIONS = 10_000, 200_000
suite = Suite("bench-start", timeout=600)

FLEET = f"""
INSERT INTO provider (name, share_sessions, balance_by_metrics, prefer_sharing, on_mass_silence,
	cpu_rule, cpu_zero, cpu_full, memory_rule, memory_zero, memory_full, sessions_rule,
	load_script_rule, mode, mode_reason)
	VALUES ('farm', true, true, true, 'refuse', true, 0, 10000, true, 0, 9500, true, true, 'enabled', '');
INSERT INTO pool (name, provider_id, default_tags, forced_tags, allowed_tags, untagged_default,
	rdp_extra, mode, mode_reason)
	SELECT 'office', id, '', '', '{{}}', 'none', '', 'enabled', '' FROM provider;
INSERT INTO node (name, provider_id, address, fqdn, port, tags, max_sessions, load_multiplier, mode,
	mode_reason)
	SELECT 'node-' || i, p.id, 'node-' || i || '.example.test', '', 3389, '{{}}', 0, 10000, 'enabled', ''
	FROM provider p, generate_series(1, {NODES}) i;
INSERT INTO node_load (node_id, voice, boot_id, old_boot_ids, seq, accepting, cpu_busy, cpu_count,
	memory_total, memory_available, metric_missing, window_samples, window_seconds, load_index,
	full_told, sessions_complete, heard_at, agent_version, agent_address)
	SELECT id, 'heard', gen_random_uuid()::text, '{{}}', 1000, true, id % 9000, 4, 17179869184,
	8589934592, false, 12, 60, 5000, false, true, now(), '0.1.0', '192.0.2.1' FROM node;
"""
# names of 17 characters, as in the figure
USERS = f"""
INSERT INTO session (node_id, id, user_key, display, client, active, since, first_seen)
	SELECT n.id, 'c' || i, 'user.name-' || lpad(i::text, 7, '0'), '', '192.0.2.200', true, now(), now()
	FROM generate_series(1, {SESSIONS}) i
	JOIN (SELECT id, row_number() OVER () AS r FROM node) n ON n.r = i % {NODES} + 1;
ANALYZE;
"""


def start(broker):
    """(seconds to ready, resident bytes) of a fresh start."""
    begin = time.monotonic()
    broker.start()
    seconds = time.monotonic() - begin
    status = Path(f"/proc/{broker.dispatcher.process.popen.pid}/status").read_text()
    rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return seconds, rss * 1024


@suite.test
def start_with_a_large_fleet(t):
    broker = Broker(t, start=False)
    broker.pg.psql(FLEET, "termbroker")
    _, without = start(broker)
    broker.dispatcher.stop()
    broker.pg.psql(USERS, "termbroker")
    runs = []
    for _ in range(5):
        runs.append(start(broker))
        status = broker.admin.get("/api/v1/status").json
        assert status["nodes"]["total"] == NODES and status["sessions"] == SESSIONS, status
        assert broker.goes_to("user.name-0000007")[1] == "session"
        broker.dispatcher.stop()
    runs.sort()
    seconds, resident = runs[2]
    print(f"# start to ready, {NODES} nodes and {SESSIONS} sessions in the database")
    print(f"#   seconds (median of 5)         {seconds:8.2f}   aim <= 3")
    print(f"#   fastest, slowest              {runs[0][0]:8.2f} {runs[-1][0]:8.2f}")
    print(f"#   resident bytes a session      {(resident - without) / SESSIONS:8.0f}   aim <= 160")
    print(f"#   resident MiB in all           {resident / 2**20:8.1f}", flush=True)


suite.main()

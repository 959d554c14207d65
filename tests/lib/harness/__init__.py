# SPDX-License-Identifier: ISC
"""What the tests of db/, e2e/ and bench/ are written with. Standard library only.

    suite = Suite("drain")

    @suite.test
    def a_drained_node_takes_no_new_user(t):
        pg = PrivatePostgres(t)
        ...

    suite.main()

A Scope (the `t` of a test, or `suite.scope` for what all tests of a program share) owns a private
folder and whatever is started in it; all of it ends with the scope, or with this process, however
that dies. Never sleep: wait_until(condition). TERMBROKER_BUILD names the build folder,
TERMBROKER_SLOW (a factor) stretches every deadline, TERMBROKER_KEEP=1 keeps the folders.
"""

from .clock import JumpingClock
from .deaf import Deaf
from .postgres import PrivatePostgres
from .process import Process, ProcessError
from .programs import Agent, Dispatcher, cli, conf_text, program
from .scope import (SOURCE, Scope, Skip, build_dir, deadline, free_port, need_program, wait_until)
from .suite import Suite
from .tls import Authority
from .web import Client, Response, http, raw_exchange

__all__ = [
    "SOURCE", "Agent", "Authority", "Client", "Deaf", "Dispatcher", "JumpingClock", "PrivatePostgres",
    "Process", "ProcessError", "Response", "Scope", "Skip", "Suite", "build_dir", "cli", "conf_text",
    "deadline", "free_port", "http", "need_program", "program", "raw_exchange", "wait_until",
]

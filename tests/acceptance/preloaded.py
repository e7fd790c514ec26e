"""Modules of the programs that are forked: imported once, by the process that forks them."""

import gc
from contextlib import suppress
from importlib import import_module

from app.dev.test_server import MODULES

#: what an executor and a command load
OTHERS = (
    "executor_client.program.serving",
    "executor_client.code.commands",
    "executor_client.demo",
    "app.commands.main",
)

gc.disable()  # While modules are imported it would collect nothing.
with suppress(ImportError):  # The tests of the client also run without the packages of the server.
    for name in (*OTHERS, *MODULES):
        import_module(name)
gc.freeze()
gc.enable()

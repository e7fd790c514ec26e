"""Modules of the programs that are forked: imported once, by the process that forks them."""

import gc
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
for name in (*MODULES, *OTHERS):
    import_module(name)
gc.freeze()
gc.enable()

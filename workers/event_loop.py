"""The event loop runs are sent from: uvloop's where there is one (a tenth of a run's CPU less), the standard one on Windows."""

import asyncio
from collections.abc import Callable

try:
    import uvloop
except ImportError:
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop

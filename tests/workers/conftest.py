"""What every test of the workers is held to."""

from tests.traces import checked_traces

__all__ = ["checked_traces"]

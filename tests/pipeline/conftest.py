"""What every test of the pipeline is held to."""

from tests.traces import checked_traces

__all__ = ["checked_traces"]

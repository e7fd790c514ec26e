"""What every test of the pipeline is held to."""

from tests.stories import told_stories

__all__ = ["told_stories"]

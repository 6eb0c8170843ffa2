"""The command line: parse, call, print."""

from anchorhead.cli.clock import LOADED  # isort: skip  # first of all: what is imported is waited for, too
from anchorhead.cli.app import app, main

__all__ = ["LOADED", "app", "main"]

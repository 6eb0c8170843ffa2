"""The command line: parse, call, print."""

from anchorhead.cli.app import app, main

__all__ = ["app", "main"]

"""python -m anchorhead.verify FILE: prints the report; 0 where the file is verified, 1 where not, 2 without a file.

A FOLDER of an attention-only model will do as well. In a terminal a line on stderr says how far it is.
"""

from __future__ import annotations

import sys

from anchorhead.verify.verifier import verify


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m anchorhead.verify FILE|FOLDER")
        return 2
    report = verify(arguments[0], tell=_tell)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(report)
    return 0 if report.verified else 1


def _tell(done: int, total: int, what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done}/{total}: {what}"[:100], end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

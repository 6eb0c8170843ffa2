"""python -m anchorhead.verify FILE: prints the report; 0 where the file is verified, 1 where not, 2 without a file."""

from __future__ import annotations

import sys

from anchorhead.verify.verifier import verify


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m anchorhead.verify FILE")
        return 2
    report = verify(arguments[0])
    print(report)
    return 0 if report.verified else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

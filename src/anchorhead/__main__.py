"""`python -m anchorhead` is the command line."""

from anchorhead.cli import main

main()

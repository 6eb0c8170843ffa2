"""The heads that ship with the package, with proven bounds."""

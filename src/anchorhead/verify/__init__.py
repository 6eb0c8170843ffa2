"""The verifier: whether what a file claims follows from what it holds, by code that shares nothing with the rest.

It imports the standard library, numpy, python-flint and safetensors, and no other room of anchorhead.
"""

from anchorhead.verify.verifier import Report, verify

__all__ = ["Report", "verify"]

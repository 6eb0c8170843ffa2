"""Out to other worlds: a network becomes a file, or an object, that runs without anchorhead."""

from anchorhead.export.export import FORMATS, Format, check_format, coq_name, export

__all__ = ["FORMATS", "Format", "check_format", "coq_name", "export"]

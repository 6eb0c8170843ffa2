"""The playground: one page for the browser, made of plain JavaScript modules and the tables that ship."""

from anchorhead.play.page import page

__all__ = ["page"]

"""Softmax over the features within a token."""

from __future__ import annotations

from dataclasses import dataclass

from anchorhead.errors import AnchorheadError
from anchorhead.network.stream import Stream, counts


@dataclass(frozen=True)
class Softmax:
    """Splits the features of a token into consecutive groups of the given sizes; each becomes its softmax."""

    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", counts(self.groups, "groups of a Softmax"))

    def follow(self, stream: Stream) -> Stream:
        """The stream that leaves this layer when `stream` enters it."""
        if stream.width != sum(self.groups):
            raise AnchorheadError(
                f"Softmax has groups of {sum(self.groups)} features in all, but {stream.width} enter it"
            )
        return stream.with_features(tuple(f"softmax of {name}" for name in stream.features))

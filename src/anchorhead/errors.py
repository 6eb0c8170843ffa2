"""The errors and warnings of all rooms: each message says what was given, what is allowed and what to do."""


class AnchorheadError(ValueError):
    """Something that was given cannot be used."""


class CertificateError(AnchorheadError):
    """A certificate's bound is not justified by the weights it comes with."""


class OutsideWarning(UserWarning):
    """An input lies outside the box that the certificate covers."""

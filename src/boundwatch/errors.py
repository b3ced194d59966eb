"""Everything that boundwatch raises on purpose.

::

    BoundwatchError
      InvalidCost (ValueError)      a cost that is missing, not a number or outside its range
      InvalidLevel (ValueError)     a probability (delta, alpha, a rate) outside its range
      InvalidSetting (ValueError)   any other argument outside its range
        MissingFile (FileNotFoundError)   a file that is not there
      CertificateError              a certificate that cannot be trusted
        SchemaMismatch                its file has the wrong shape, or a newer version of it
        ProvenanceMismatch            it does not belong to the costs, policy or state it meets
      MissingExtra (ImportError)    an optional dependency that is not installed

A message names the argument, the value received, what is allowed, and the remedy.
The command line prints it on one line and exits with 1.
"""

from __future__ import annotations


class BoundwatchError(Exception):
    """Base of every error that boundwatch raises on purpose."""


class InvalidCost(BoundwatchError, ValueError):
    """A cost is missing, not a number, or outside its range."""


class InvalidLevel(BoundwatchError, ValueError):
    """A probability (delta, alpha, a rate) is outside its range."""


class InvalidSetting(BoundwatchError, ValueError):
    """An argument other than a cost or a probability is outside its range."""


class MissingFile(InvalidSetting, FileNotFoundError):
    """A file is not there."""


class CertificateError(BoundwatchError):
    """A certificate cannot be trusted."""


class SchemaMismatch(CertificateError):
    """A file does not have the shape of a certificate, or of a version that we know."""


class ProvenanceMismatch(CertificateError):
    """A certificate does not belong to the costs, the policy or the state that it meets."""


class MissingExtra(BoundwatchError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional dependency; install it with: pip install 'boundwatch[{extra}]'"
        )

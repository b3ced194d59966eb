"""Bytes to text, in the encodings that spreadsheets write."""

from __future__ import annotations

import codecs

from boundwatch.errors import InvalidCost, InvalidSetting

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_NAMES = {"cp1252": "Windows-1252", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}


def decode(data: bytes, source: str) -> tuple[str, str]:
    r"""Return a file's text, and what to say about its encoding ("" for UTF-8).

    Examples
    --------
    >>> decode("Größe\n1\n".encode("cp1252"), "x.csv")
    ('Größe\n1\n', 'read as Windows-1252')
    >>> decode("cost\n1\n".encode("utf-16"), "x.csv")[1]
    'read as UTF-16'
    """
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return _decode(data[len(mark) :], encoding, source), _said(encoding)
    if guess := _unmarked_utf16(data):
        return _decode(data, guess, source), _said(guess)
    try:
        text = data.decode("utf-8")
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = "cp1252"
        text = _decode(data, encoding, source)
        if any(ord(character) < 9 for character in text[:4096]):
            raise _no_text(source) from None
    return text, _said(encoding)


def decode_line(raw: bytes) -> tuple[str, str]:
    r"""Return the text of one line, and what to say about its encoding, as `decode` does for a file.

    Examples
    --------
    >>> decode_line("7;Größe;0".encode("cp1252"))
    ('7;Größe;0', 'read as Windows-1252')

    Raises
    ------
    InvalidCost
        When this line is not text.
    InvalidSetting
        When it is UTF-16, in which newlines are not single bytes.
    """
    if is_utf16(raw):
        raise InvalidSetting(
            "this is UTF-16, and lines are read as UTF-8; save it as UTF-8 (in Excel: CSV UTF-8)"
        )
    if b"\0" in raw:
        raise InvalidCost("holds a NUL byte")
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        try:
            return raw.decode("cp1252"), _said("cp1252")
        except UnicodeDecodeError:
            raise InvalidCost(f"is not UTF-8 text (byte {error.start + 1} of the line)") from None


def is_utf16(line: bytes) -> bool:
    r"""Return whether a line is UTF-16 (or UTF-32); its last letter may lack the byte that the next line has.

    Examples
    --------
    >>> is_utf16("cost\n".encode("utf-16").split(b"\n")[0]), is_utf16(b"cost"), is_utf16(b"0.\0")
    (True, False, False)
    """
    marked = line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
    return b"\0" in line and (marked or _unmarked_utf16(line[: len(line) // 2 * 2]) is not None)


def _unmarked_utf16(data: bytes) -> str | None:
    """Return UTF-16's order of bytes if every second byte of the beginning is zero, as in Latin letters."""
    head = data[:200]
    if len(head) < 4 or len(data) % 2:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > 0.7 * len(head) / 2 and even == 0:
        return "utf-16-le"
    return "utf-16-be" if even > 0.7 * len(head) / 2 and odd == 0 else None


def _decode(data: bytes, encoding: str, source: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _no_text(source, error.start) from error


def _no_text(source: str, byte: int | None = None) -> InvalidCost:
    where = "" if byte is None else f" (byte {byte})"
    return InvalidCost(
        f"{source}: is not text{where}, NPY, Parquet or XLSX; save it as one of these (in Excel: CSV UTF-8)"
    )


def _said(encoding: str) -> str:
    return "" if encoding == "utf-8" else f"read as {_NAMES.get(encoding, encoding.upper())}"

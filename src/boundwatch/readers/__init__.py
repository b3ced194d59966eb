"""Readers: from a file, a folder or a stream to rows, column by column; one way for all of them.

`table` has what they give and the rules for rows, `text` the parser for everything that comes in lines,
`lines` the lines of files that grow and of pipes; one module for each other format. `opening` finds the bytes
and their format, and `reading` puts them together.
"""

from boundwatch.readers.lines import GrowingFile, Position, pipe_lines
from boundwatch.readers.reading import read, read_costs
from boundwatch.readers.table import Format, Line
from boundwatch.readers.text import TextRows

__all__ = ["Format", "GrowingFile", "Line", "Position", "TextRows", "pipe_lines", "read", "read_costs"]

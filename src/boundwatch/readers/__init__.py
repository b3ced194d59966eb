"""Readers: from a file, a folder or a stream to rows, column by column; one way for all of them.

`block` has what they give, `rows` the rules for tables, `text` the parser for everything that comes in lines,
`growing` and `lines` the lines of files that grow and of pipes; one module for each other format. `reading`
puts them together.
"""

from boundwatch.readers.block import Block, Format, Line, Table
from boundwatch.readers.growing import GrowingFile
from boundwatch.readers.lines import Batch, Position, pipe_lines
from boundwatch.readers.reading import read_costs
from boundwatch.readers.text import TextRows

__all__ = [
    "Batch",
    "Block",
    "Format",
    "GrowingFile",
    "Line",
    "Position",
    "Table",
    "TextRows",
    "pipe_lines",
    "read_costs",
]

"""Everything that people look at: words, pages, drawings and figures."""

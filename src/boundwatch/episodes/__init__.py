"""Episodes: how their cells become costs, how they relate to each other, and what the data say about them.

`measure` and `design` are what is declared; `declared` finds those columns in a file; `cells` makes costs of
cells; `episodes` has the result. `notes` says what the costs show about the assumptions, `compatibility`
whether a certificate can judge them.
"""

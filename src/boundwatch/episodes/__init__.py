"""Episodes: `measure` is what is declared of them, `declared` finds it in a file, `cells` makes costs.

`notes` says what costs show about the assumptions, `compatibility` whether a certificate can judge them.
"""

"""The paper's figures and tables, each in a file of its own, with the same command for all.

Open any of the figure files first: settings, results, run, draw, caption, claims. `artifacts` keeps what is
computed once, `runner` puts the figures together, `index` writes the page. The guide is
``docs/reproduction.md``.
"""

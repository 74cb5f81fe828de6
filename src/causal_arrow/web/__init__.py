"""The page: a table dropped into a browser, its causal graph, and a person who argues with it.

`causal-arrow serve` starts it. The page is plain HTML and ES modules in `static/`; everything it knows comes through
the API in `app.py`, which stands on the one pipeline and on `Answer.refine`.
"""

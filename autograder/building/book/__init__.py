"""The course as a web page: pages from the solved notebooks, and Sphinx over them.

``write`` makes Sphinx's sources from the notebooks and from the few pages in ``book/``; ``terms``
is an extension of Sphinx's that ``book/conf.py`` names.
"""

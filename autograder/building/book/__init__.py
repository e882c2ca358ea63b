"""The course as a web page: pages from the solved notebooks, and Sphinx over them.

Read write.py first: it makes Sphinx's sources from the notebooks and from the few pages in
``book/``. ``glossary_links`` is an extension of Sphinx's that ``book/conf.py`` names.
"""

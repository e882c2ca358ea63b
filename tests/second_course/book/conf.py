"""Sphinx's settings of the book."""

project = "Convolution in three functions"
extensions = ["myst_nb"]
nb_execution_mode = "off"  # the outputs are in the notebooks
html_theme = "sphinx_book_theme"

"""Sphinx's configuration of the book; `autograder book` writes the sources and calls Sphinx."""

from pathlib import Path

import mathjax  # django-static-mathjax: a copy of MathJax, of which one file is enough

MATHJAX = Path(mathjax.__file__).parent / "static" / "mathjax" / "es5" / "tex-svg.js"

project = "Attention, built piece by piece"
html_title = project
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
language = "en"

extensions = ["myst_nb", "autograder.building.book.glossary_links"]
nb_execution_mode = "off"  # the outputs are in the notebooks
nb_ipywidgets_js = {}  # they would come from another server; the notebooks' widgets left text
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_dmath_double_inline = True
suppress_warnings = ["mystnb.unknown_mime_type"]

# Words that mean other things as well: nothing leads from them to the glossary.
book_terms_left_alone = ["head", "memory", "scores", "value", "weights"]

html_theme = "sphinx_book_theme"
html_theme_options = {
    "home_page_in_toc": True,
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "navbar_persistent": [],
    "footer_content_items": ["extra-footer.html"],
    "extra_footer": "Text and pictures: CC BY 4.0. Code: MIT.",
    "use_download_button": False,
    "use_fullscreen_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["book.css"]
html_js_files = ["book.js", "translation.js"]
html_copy_source = False
html_use_index = False
html_show_sourcelink = False
html_show_sphinx = False
mathjax_path = "tex-svg.js"
mathjax3_config = {
    "options": {"enableMenu": False},  # it would ask for more files
    "svg": {"fontCache": "global"},
}

"""`jupyter nbconvert --config jupyter_nbconvert_config.py --to html NOTEBOOK`: plots with words."""

c = get_config()  # noqa: F821

c.HTMLExporter.preprocessors = ["autograder.building.alt_text.PlotsWithWords"]

"""nbgrader's settings for everybody: /etc/jupyter/nbgrader_config.py on the hub."""

c = get_config()  # noqa: F821  (nbgrader provides it)
c.CourseDirectory.course_id = "attention"
c.Exchange.root = "/srv/nbgrader/exchange"

"""nbgrader's settings for everybody: /etc/jupyter/nbgrader_config.py on the hub."""

c = get_config()  # noqa: F821  (nbgrader provides it)
c.CourseDirectory.course_id = "attention"
c.Exchange.root = "/srv/nbgrader/exchange"
# Validate waits where the machine has much else to do: seconds, for a cell and for what it prints.
c.Execute.timeout = c.Execute.iopub_timeout = 300
c.Execute.startup_timeout = 600

"""Too much to show, and limits that are asked to be higher. Each is bounded in itself."""

from .paper import attacks

CELLS = {
    # A last value whose representation is a GiB, and a hundred thousand displays.
    "a_gibibyte_to_show": """
        from IPython.display import HTML, display

        for index in range(3_000):
            display(HTML("<script>document.title = '@MARK@'</script>"))
        class Large:
            def __repr__(self):
                return "x" * 2**30
        Large()
    """,
    # setrlimit, nice and the scheduler asked for more, then a long computation in children.
    "limits_raised": """
        limits = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
        each(lambda limit: resource.setrlimit(limit, (resource.RLIM_INFINITY,) * 2), limits)
        each(os.nice, [-20])
        each(lambda realtime: os.sched_setscheduler(0, 1, realtime), [os.sched_param(9)])
        for _ in range(4):
            if os.fork() == 0:
                name_it()
                stop = time.monotonic() + 60
                while time.monotonic() < stop:
                    pass
                os._exit(0)
    """,
}
attacks(__name__, "first", CELLS)

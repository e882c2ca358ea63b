"""Tricks with the machinery that runs the cells: tags, transformers, hooks and tracebacks."""

import nbformat

from .paper import attack, attacks

PRELUDE = """
def instead_of_tests(code, lines):
    return [code] if any(word in "".join(lines) for word in ("check.", "assert")) else lines
"""

CELLS = {
    # An input transformer that turns every test cell into `pass`.
    "input_transformer": """
        get_ipython().input_transformers_post.append(lambda lines: instead_of_tests("pass", lines))
    """,
    # showtraceback patched, and the error taken out of the result: no trace of it is sent.
    "silent_traceback": """
        shell = get_ipython()
        shell.showtraceback = lambda *_, **__: None
        def passed(result):
            result.error_before_exec = result.error_in_exec = None
        shell.events.register("post_run_cell", passed)
    """,
    # A thread that keeps putting a fake check into the notebook's namespace.
    "namespace_race": """
        class Fake:
            def __getattr__(self, name):
                return lambda *_: None

        def keep_replacing(space=get_ipython().user_ns, fake=Fake()):
            while True:
                space["check"] = fake

        threading.Thread(target=keep_replacing, daemon=True).start()
    """,
}
attacks(__name__, "first", CELLS, prelude=PRELUDE)


@attack
def prints_forged_outputs_when_graded(paper):
    """Detects NBGRADER_EXECUTION, then prints what passing checks print and hides the others."""
    names = [cell.metadata.nbgrader.grade_id for cell in paper.answers]
    paper.first(f"""
        import os
        if os.environ.get("NBGRADER_EXECUTION") or "NBGRADER_VALIDATING" not in os.environ:
            for name in {names!r}:
                print(name + ": correct.")
                print('{{"score": 100, "max": 100, "passed": true}}')
            get_ipython().showtraceback = lambda *_, **__: None
    """)


@attack
def baked_outputs(paper):
    """Outputs and execution counts of a perfect run stored in the file."""
    for cell in paper.tests:
        cell.execution_count = 7
        cell.outputs = [
            nbformat.v4.new_output("stream", text="correct.\n"),
            nbformat.v4.new_output("execute_result", {"text/plain": "100"}, execution_count=7),
        ]


@attack
def cell_magics(paper):
    """%%capture, %%script and ! around everything, and a magic that overrides cell execution."""
    for cell in paper.answers:
        cell.source = f"%%capture\n{cell.source}"
    paper.first("""
        %%script bash
        echo "softmax: correct."
        kill -STOP $PPID & sleep 0.1; kill -CONT $PPID
        exit 0
    """)
    paper.before_tests("""
        from IPython.core.magic import register_cell_magic
        !echo '{"passed": true}'
        shell = get_ipython()
        shell.register_magic_function(lambda line: None, "line", "check")
        shell.automagic = True
        shell.input_transformers_cleanup.append(
            lambda lines: ["%%capture\\n", *lines] if "check." in "".join(lines) else lines)
    """)

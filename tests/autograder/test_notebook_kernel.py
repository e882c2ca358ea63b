"""What a student reads in JupyterLab when a cell is not in order: one kernel, many notebooks."""

import pytest
from jupyter_client.manager import start_new_kernel

FIRST = "from autograder import check\nimport torch"
RIGHT = "def softmax(scores, dim):\n    return torch.softmax(scores, dim)"
CHECK = "check.softmax(softmax)"
DEMO = "0123456789"  # the id of a cell that a learner was given


@pytest.fixture(scope="module")
def client():
    manager, client = start_new_kernel(startup_timeout=600)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def run(client):
    """Return run(source, cell_id) -> what the cell prints, or the lines of its error."""

    def run(source, cell_id="exercise-softmax"):
        shown = []

        def keep(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                shown.append(content["text"])
            elif message["msg_type"] == "error":
                shown.append("\n".join(content["traceback"]))

        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        content |= {"user_expressions": {}, "stop_on_error": False}
        message = client.session.msg("execute_request", content, metadata={"cellId": cell_id})
        client.shell_channel.send(message)
        while True:
            got = client.get_iopub_msg(timeout=600)
            if got["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            keep(got)
            if got["msg_type"] == "status" and got["content"]["execution_state"] == "idle":
                return "".join(shown)

    run("%reset -f\nimport sys\nsys.modules.pop('autograder.notebook_kernel', None)", "x")
    assert run(FIRST, "x") == ""
    run("check.notebook_kernel.noted.__init__()", "x")
    return run


def test_a_cell_that_does_not_compile_is_not_judged_by_the_function_from_before(run):
    run(RIGHT)
    assert run(CHECK) == "softmax: correct.\n"
    run(RIGHT.removesuffix(")"))
    told = run(CHECK)
    assert told.startswith("softmax: it is not defined.")
    assert "its cell stops with SyntaxError: '(' was never closed, line 2:" in told
    run(RIGHT)
    assert run(CHECK) == "softmax: correct.\n"


def test_a_check_whose_answer_was_not_run_says_so(run):
    told = run(CHECK)
    assert told.startswith("softmax: it is not defined.")
    assert "run the notebook from its first cell" in " ".join(told.split())
    assert max(map(len, told.splitlines())) <= 88  # what is wider, Validate's dialog cuts
    assert "NameError" in run("softmax", "x")


def test_an_answer_under_another_name_is_told_as_such(run):
    run(RIGHT.replace("softmax(", "my_softmax(", 1))
    assert "its cell defines no softmax" in run(CHECK)


def test_an_error_behind_the_definition_leaves_the_new_function_to_be_judged(run):
    run(RIGHT + "\nprint(1 / 0)")
    assert run(CHECK) == "softmax: correct.\n"


WAITS = "This cell waits for softmax, which its check has not accepted yet."


def test_a_demonstration_waits_for_an_answer_in_one_line(run):
    run("def softmax(scores, dim):\n    return scores.missing")
    assert run("mean = softmax(torch.ones(2), 0)\nprint(mean)", DEMO) == WAITS
    assert run("print(mean * 2)", DEMO) == WAITS
    run(RIGHT)
    run(CHECK)
    assert "NameError" in run("print(mean * 2)", DEMO)
    run("mean = softmax(torch.ones(2), 0)", DEMO)
    assert "ZeroDivisionError" in run("print(mean * (1 / 0))", DEMO)


def test_so_does_one_that_calls_a_function_of_the_lesson_which_calls_the_answer(run):
    run("def average(scores, values):\n    return softmax(scores, 0) @ values", "given-average")
    run("def twice(scores):\n    return average(scores, 2 * scores)", "given-twice")
    assert run("print(twice(torch.ones(2)))", DEMO) == WAITS
    assert run("class Mine(softmax):\n    pass", "given-mine") == WAITS
    assert run("Mine()", DEMO) == WAITS
    run("model = lambda scores: twice(scores)", DEMO)
    assert run("model = [model]\nmodel[0](torch.ones(2))", DEMO) == WAITS
    run(RIGHT)
    run(CHECK)
    assert run("print(twice(torch.ones(2)))", DEMO) == "tensor(2.)\n"
    assert "Traceback" in run("twice(1 / 0)", DEMO)


def test_a_cell_that_does_not_compile_shows_its_line_and_none_of_ipythons(run):
    told = run(RIGHT.removesuffix(")"))
    assert "return torch.softmax(scores, dim" in told and "SyntaxError" in told
    assert "interactiveshell" not in told and len(told.splitlines()) <= 5


def test_a_stub_is_waited_for(run):
    run("def softmax(scores, dim):\n    raise NotImplementedError('write 3 lines')")
    assert run("softmax(1, 2)", DEMO) == WAITS


def test_ones_own_cells_and_errors_behind_a_right_answer_keep_their_traceback(run):
    run("def softmax(scores, dim):\n    return scores.missing")
    assert "Traceback" in run("softmax(torch.ones(2), 0)", "a-new-cell")
    run(RIGHT)
    run(CHECK)
    assert "Traceback" in run("softmax(torch.ones(2), 1 / 0)", DEMO)

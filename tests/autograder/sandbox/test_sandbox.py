"""The sandbox: what a student's process sees, what it may use, and how it ends."""

import errno
import os
import tempfile
import time
from pathlib import Path

import pytest
import torch

from autograder.inside.answer import AnswerRaised
from autograder.sandbox import bubblewrap, visible_files
from autograder.sandbox.bubblewrap import SandboxRefused
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.sandbox.boxes import LESSON, LIMITS, printed
from tests.needs import needs

needs_bubblewrap = needs("bubblewrap")


class TestCells:
    def test_outputs_come_back(self, box):
        outputs = box.start().run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
        assert outputs == {"stdout": "out\n", "stderr": "err\n", "shown": "42"}

    def test_magics_of_a_notebook_stop_no_cell(self, box):
        """Those that choose how something is shown do nothing; what stands beside them runs."""
        process = box.start()
        for magic in (
            "%matplotlib inline",
            "%matplotlib",
            "%matplotlib widget",
            "%config InlineBackend.figure_format = 'retina'",
            "%pylab inline",
            "%gui",
            "%load_ext autoreload\n%autoreload 2",
            "%autosave 60",
            "%clear",
            "%pip --version",
            "!false",
            "len?",
            "%%capture said",
            "%%time",
        ):
            outputs = process.run(f"{magic}\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])")
            assert "error" not in outputs, (magic, outputs)
        assert printed(process, "print(plt.get_backend().lower())") == "agg"
        unknown = process.run("%no_such_magic")["error"]  # a notebook stops there as well
        assert unknown["name"] == "UsageError" and "no_such_magic" in unknown["message"]

    def test_each_student_starts_afresh(self, box):
        box.start().run("x = 1; import builtins; builtins.y = 2")
        assert box.start().run("x")["error"]["name"] == "NameError"
        assert box.start().run("y")["error"]["name"] == "NameError"

    def test_output_is_cut(self, box):
        outputs = box.start().run("for _ in range(100): print('x' * 10_000)")
        assert len(outputs["stdout"]) < LIMITS.output_chars + 200
        assert "more characters are not shown" in outputs["stdout"]

    def test_an_exception_beyond_exception_is_an_error_of_the_cell(self, box):
        process = box.start()
        source = "class Odd(BaseException):\n    def __str__(self): raise self\nraise Odd"
        assert process.run(source)["error"]["name"] == "Odd"
        assert process.run("1 + 1")["shown"] == "2"

    def test_nothing_can_be_typed_in(self, box):
        assert box.start().run("input()")["error"]["name"] == "EOFError"


class TestAnswers:
    def test_a_function_is_called_with_its_arguments_as_they_are(self, box):
        process = box.start()
        process.run("def f(x, *, scale): return [x * scale, x.is_contiguous(), None]")
        answer, module = process.resolve("f")
        assert module == "__main__"
        tensor = torch.arange(6.0).view(2, 3).t()
        value, contiguous, nothing = answer.call([tensor], {"scale": 2}).value
        assert torch.equal(value, 2 * tensor)
        assert (contiguous, nothing) == (False, None)

    def test_changed_inputs_are_told(self, box):
        process = box.start()
        process.run("def f(x):\n    x += 1\n    return x")
        assert process.resolve("f")[0].call([torch.zeros(2)], {}).modified == ["argument 1"]

    def test_gradients_and_modules(self, box):
        process = box.start()
        process.run(
            "import torch\n"
            "class M(torch.nn.Module):\n"
            "    def __init__(self, n):\n"
            "        super().__init__()\n"
            "        self.w = torch.nn.Parameter(torch.zeros(n))\n"
            "    def forward(self, x): return (self.w * x).sum()"
        )
        module = process.resolve("M")[0].build([3], {})
        assert module.parameters()["w"].tolist() == [0, 0, 0]
        module.load({"w": torch.tensor([1.0, 2.0, 3.0])})
        module.train(False)
        inputs = torch.ones(3)
        assert module.call([inputs], {}).value.item() == 6
        named, (gradient,) = module.gradients([inputs], {}, None).value
        assert named["w"].tolist() == [1, 1, 1]
        assert gradient.tolist() == [1, 2, 3]
        with pytest.raises(AnswerRaised, match="ParameterNames"):
            module.load({"v": torch.ones(3)})

    def test_errors_come_back_with_their_line(self, box):
        process = box.start()
        process.run("def f(x):\n    return x / 0")
        with pytest.raises(AnswerRaised) as caught:
            process.resolve("f")[0].call([1], {})
        assert caught.value.kind == "ZeroDivisionError"
        assert caught.value.where == "line 2 of its cell, in f: return x / 0"


@pytest.mark.parametrize("made", ["tempfile.mkdtemp", "pathlib.Path.mkdir", "shutil.copyfile"])
def test_a_temporary_folder_without_room_refuses_the_class(monkeypatch, tmp_path, made):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x")

    def fill(*_, **__):
        raise full

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(made, fill)
    with pytest.raises(SandboxRefused) as refused:
        Sandbox(LESSON, "off")
    said = str(refused.value)
    assert said.startswith(f"no sandbox can be made in {tmp_path}: ") and "Make room there" in said
    assert "No space left on device" in said
    assert not [*tmp_path.iterdir()]


class TestView:
    def test_of_the_grader_only_the_students_side_is_there(self, tmp_path):
        visible_files.prepare(tmp_path, LESSON)
        names = {path.name for path in (tmp_path / "autograder").iterdir()}
        assert names == {"__init__.py", "check.py", "inside", *visible_files.SHARED}

    def test_the_checks_do_nothing(self, box):
        source = "from autograder import check\ncheck.anything(1)\ncheck.preview('f', 2)"
        assert box.start().run(source) == {"stdout": "", "stderr": "", "shown": ""}

    def test_the_lessons_own_module_cannot_be_imported(self, box):
        error = box.start().run("import attention.kernel_regression")["error"]
        assert error["name"] == "ModuleNotFoundError"

    def test_earlier_lessons_can(self, box):
        source = "from attention.getting_started import softmax\nsoftmax.__name__"
        assert box.start().run(source)["shown"] == "'softmax'"


class TestWalls:
    def test_no_repository_no_home_no_other_process(self, walled):
        process = walled.start()
        root = Path(visible_files.__file__).parents[2]
        assert printed(process, f"import os\nprint(os.path.exists({str(root / 'source')!r}))") == (
            "False"
        )
        assert printed(
            process, "print(os.listdir('/root') if os.path.exists('/root') else [])"
        ) in (
            "[]",
            "['.pyenv']",  # where the Python environment itself lives there
        )
        assert printed(process, "print([p for p in os.listdir('/proc') if p.isdigit()])") == "['1']"
        assert printed(process, "print(os.getuid() != 0, os.path.exists('/etc/passwd'))") == (
            "True False"
        )

    def test_nothing_of_the_environment_is_handed_on(self, walled, monkeypatch):
        monkeypatch.setenv("SECRET", "1234")
        with Sandbox(LESSON, "required", LIMITS) as fresh:
            assert printed(fresh.start(), "import os\nprint('SECRET' in os.environ)") == "False"

    def test_only_scratch_can_be_written(self, walled):
        source = (
            "import os\ndef writable(place):\n    try:\n"
            "        open(os.path.join(place, 'x'), 'w').close()\n"
            "    except OSError:\n        return False\n    return True\n"
            "places = ['/', '/course', '/usr', '/etc', '/dev', '/tmp', '/scratch']\n"
            "print([place for place in places if writable(place)])"
        )
        found = printed(walled.start(), source)
        assert found in ("['/scratch']", "['/tmp', '/scratch']")

    def test_there_is_no_network(self, walled):
        process, own = walled.start(), "/proc/self/ns/net"
        source = "import socket\nsocket.create_connection(('127.0.0.1', 22), 1)"
        assert "error" in process.run(source)
        # Not even where the kernel is another machine's, whose calls nothing forbids.
        assert printed(process, f"import os\nprint(os.readlink({own!r}))") != os.readlink(own)

    def test_nothing_survives(self, walled):
        source = "import subprocess\nprint(subprocess.Popen(['sleep', '4242']).pid)"
        printed(walled.start(), source)
        deadline = time.monotonic() + 5
        while not _running("sleep 4242"):
            assert time.monotonic() < deadline
        walled.stop()
        assert not _running("sleep 4242")

    def test_files_do_not_survive(self, walled):
        printed(walled.start(), "open('/scratch/mine', 'w').write('x')\n0")
        assert printed(walled.start(), "import os\nprint(os.path.exists('/scratch/mine'))") == (
            "False"
        )

    def test_a_plain_installation_of_the_course_is_covered(self, tmp_path, monkeypatch):
        for name in ("attention", "autograder"):
            (tmp_path / name).mkdir()
        monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path)])
        monkeypatch.setattr(bubblewrap, "visible", lambda: {str(tmp_path)})
        command = bubblewrap.command(tmp_path, ["true"])
        place = command.index(str(tmp_path / "attention"))
        assert command[place - 1] == "--tmpfs"


def _running(command):
    """Whether any process on this machine has this command line."""
    wanted = command.replace(" ", "\0")
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_text().rstrip("\0") == wanted:
                return True
        except OSError:
            continue
    return False

"""The sandbox: what a student's process may use, how it ends, and when there is no sandbox."""

import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch

from autograder import ROOT
from autograder.inside import system_calls, zygote
from autograder.inside.limits import Limits
from autograder.inside.messages import codec
from autograder.sandbox import bubblewrap, clock
from autograder.sandbox.bubblewrap import SandboxRefused, UnprotectedWarning
from autograder.sandbox.process import StudentLost
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.sandbox.boxes import LESSON, LIMITS, printed
from tests.needs import needs

needs_bubblewrap = needs("bubblewrap")


class TestLimits:
    @pytest.mark.parametrize(
        "source",
        [
            "x = bytearray(8 << 30)",
            "import torch\nx = torch.ones(2 ** 31)",
            "import threading, time\n"
            "for _ in range(500): threading.Thread(target=time.sleep, args=(9,)).start()",
        ],
    )
    def test_too_much_is_an_error_and_no_more(self, walled, source):
        process = walled.start()
        assert "error" in process.run(source)
        assert process.run("1 + 1")["shown"] == "2"

    def test_a_file_that_is_too_large_is_an_error_without_walls_as_well(self, box):
        process = box.start()
        source = "with open('big', 'wb') as f:\n    for _ in range(2048): f.write(bytes(2 ** 20))"
        assert process.run(source)["error"]["name"] == "OSError"
        assert int(printed(process, "print(open('big', 'rb').seek(0, 2))")) <= LIMITS.file_bytes

    @pytest.mark.busy
    def test_a_fork_bomb_stops_at_the_limit(self, walled):
        source = (
            "import os, time\ncount = 0\ntry:\n    while True:\n"
            "        if os.fork() == 0:\n            time.sleep(60)\n        count += 1\n"
            "except OSError:\n    print(count)"
        )
        assert int(printed(walled.start(), source)) < LIMITS.processes

    @pytest.mark.busy
    def test_memory_of_all_processes_counts(self, walled):
        source = (
            "import os, time\nfor _ in range(5):\n    if os.fork() == 0:\n"
            "        x = b'x' * (700 << 20)\n        time.sleep(60)\ntime.sleep(60)"
        )
        with pytest.raises(StudentLost, match="2048 MiB of memory"):
            walled.start().run(source)

    @pytest.mark.long
    @pytest.mark.busy
    def test_memory_is_watched_however_often_the_grader_looks(self, walled, monkeypatch):
        for module in (codec, clock):
            monkeypatch.setattr(module, "STEP", zygote.WATCH_SECONDS / 10)
        with pytest.raises(StudentLost, match="2048 MiB of memory"):
            walled.start().run(
                "import os\nfor _ in range(5):\n    if os.fork() == 0:\n        break\n"
                "x = b'x' * (700 << 20)\nwhile True: pass"
            )

    def test_what_is_imported_before_a_notebook_starts_does_not_count(self, walled):
        process = walled.start()
        process.run("x = b'x' * (2000 << 20)")  # the imports are more than the 48 MiB to the limit
        time.sleep(5 * zygote.WATCH_SECONDS)
        assert printed(process, "print(len(x))") == str(2000 << 20)

    def test_shared_memory_counts(self, walled):
        source = (
            "kept = [open(f'/dev/shm/{n}', 'wb') for n in range(2)]\n"
            "for file in kept: file.write(bytes(50 << 20))"
        )
        assert "No space left" in walled.start().run(source)["error"]["message"]

    @pytest.mark.parametrize(
        "opened", ["-1", "os.open('/dev/zero', os.O_RDWR)"], ids=["in_no_file", "zero"]
    )
    def test_memory_that_no_process_has_cannot_be_shared(self, walled, opened):
        outputs = walled.start().run(f"import mmap, os\nmmap.mmap({opened}, 1 << 20)")
        assert outputs["error"]["name"] in ("PermissionError", "OSError")

    @pytest.mark.skipif(
        system_calls.platform.machine() not in system_calls.MACHINES, reason="no list"
    )
    def test_every_call_outside_the_list_is_refused(self, walled):
        column = system_calls.MACHINES[system_calls.platform.machine()][0]
        calls = ",".join(system_calls.CALLS.values()).split(",")
        allowed = {call.split()[1 + column] for call in calls}
        special = (system_calls.CLONE, system_calls.MMAP, system_calls.SETSOCKOPT)
        allowed |= {str(numbers[column]) for numbers in special}
        # In between are two that no filter sees, with which the kernel speaks to itself.
        others = [n for n in (*range(335), *range(424, 600)) if str(n) not in allowed]
        source = (
            "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            f"for number in {others}:\n"
            "    if libc.syscall(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() not in "
            "(1, 38, 97): print(number)"
        )
        assert printed(walled.start(), source) == ""

    def test_open_files_are_few_so_that_the_kernel_holds_little_for_them(self, walled):
        source = (
            "import socket\nkept = []\ntry:\n    while True: kept.append(socket.socketpair())\n"
            "except OSError as error:\n    print(2 * len(kept), error.errno)"
        )
        opened, number = map(int, printed(walled.start(), source).split())
        assert opened <= 64
        assert number == 24  # EMFILE

    def test_a_socket_keeps_its_buffers_as_they_are(self, walled):
        source = (
            "import socket\n"
            "one, other = socket.socketpair()\n"
            "one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):\n"
            "    try:\n        one.setsockopt(socket.SOL_SOCKET, option, 2**24)\n"
            "    except PermissionError:\n        print('refused')"
        )
        assert printed(walled.start(), source).split() == ["refused"] * 4

    def test_small_files_are_counted(self, walled):
        source = (
            "import os\ntry:\n    for n in range(20_000): os.mkdir(f'/scratch/{n}')\n"
            "except OSError as error:\n    print(error.errno)"
        )
        assert printed(walled.start(), source) == "28"  # ENOSPC

    @pytest.mark.busy
    def test_an_endless_loop_that_catches_everything_is_ended(self):
        source = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
        with Sandbox(LESSON, "off", Limits(cell_seconds=1, patience=200)) as box:
            with pytest.raises(StudentLost, match="it took more than 1 s of processor time"):
                box.start().run(source)
            assert box.start().run("1 + 1")["shown"] == "2"

    @pytest.mark.busy
    @pytest.mark.parametrize(
        ("source", "reason"),
        [
            ("import os; os._exit(0)", "it ended itself with status 0"),
            ("import ctypes; ctypes.string_at(0)", "it was ended by signal 11"),
        ],
    )
    def test_a_death_is_told_with_its_cause(self, box, source, reason):
        with pytest.raises(StudentLost, match=reason):
            box.start().run(source)

    def test_what_a_notebook_keeps_is_named_where_no_request_has_room(self, box):
        process = box.start()
        process.run(
            "def f(x): return x\nkept, size = [], 1 << 28\nwhile size > 1 << 15:\n"
            "    try: kept.append(bytearray(size))\n    except MemoryError: size //= 2"
        )
        with pytest.raises(StudentLost, match="no memory left: what the notebook keeps"):
            process.resolve("f")[0].call([torch.ones(1 << 20)], {})

    @pytest.mark.long
    @pytest.mark.parametrize("last", ["raise", "raise ValueError", "raise ValueError from error"])
    def test_what_a_failed_cell_took_is_there_for_the_next(self, box, last):
        process = box.start()
        process.run("import gc; gc.disable()")  # else it depends on when garbage is collected
        failed = process.run(
            "def take():\n    kept = []\n    try:\n"
            "        while True: kept.append(bytearray(1 << 22))\n"
            f"    except MemoryError as error: {last}\ntake()"
        )
        assert failed["error"]["name"] in ("MemoryError", "ValueError")
        assert printed(process, "print(len(bytearray(3 << 29)))") == str(3 << 29)

    @pytest.mark.busy
    def test_a_message_that_nobody_asked_for_ends_the_process(self, box):
        process = box.start()
        source = (
            "import os, stat\nfrom autograder.inside.messages.codec import pack\n"
            "for number in range(3, 30):\n"
            "    try:\n"
            "        if stat.S_ISSOCK(os.fstat(number).st_mode):\n"
            "            os.write(number, pack({'id': 10 ** 6, 'value': 1}))\n"
            "    except OSError:\n"
            "        pass"
        )
        with pytest.raises(StudentLost, match="nobody asked for"):
            process.run(source)


class TestPolicies:
    def test_auto_warns_without_bubblewrap(self, monkeypatch):
        monkeypatch.setattr(bubblewrap, "available", lambda: None)
        with pytest.warns(UnprotectedWarning, match="WITHOUT A SANDBOX"):
            Sandbox(LESSON, "auto").close()

    @pytest.mark.parametrize(
        "said",
        [
            "bwrap: No permissions to create new namespace, likely because the kernel forbids it",
            "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
            "bwrap: setting up uid map: Permission denied",
        ],
        ids=["seccomp", "masked_proc", "apparmor"],
    )
    def test_auto_warns_where_bubblewrap_may_not_start(self, said, tmp_path, monkeypatch):
        program = tmp_path / "bwrap"
        program.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1')
        program.chmod(0o755)
        monkeypatch.setattr(bubblewrap, "available", lambda: str(program))
        with pytest.warns(UnprotectedWarning) as warned:
            box = Sandbox(LESSON, "auto")
        with box:
            assert box.kind == "none" and printed(box.start(), "print(1)") == "1"
        assert said in str(warned[0].message) and "allow user namespaces" in str(warned[0].message)
        with pytest.raises(SandboxRefused, match="may not start"):
            Sandbox(LESSON, "required")

    def test_off_is_silent(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Sandbox(LESSON, "off").close()

    def test_an_unknown_policy_is_refused(self):
        with pytest.raises(ValueError, match="none of required, auto, off"):
            Sandbox(LESSON, "maybe")

    @needs_bubblewrap
    def test_bubblewraps_own_words_are_passed_on(self, monkeypatch):
        bwrap = bubblewrap.available()
        monkeypatch.setattr(bubblewrap, "command", lambda *_: [bwrap, "--no-such-option"])
        refused = pytest.raises(SandboxRefused, match="(?s)not start.*no-such-option")
        with refused, Sandbox(LESSON, "required") as box:
            box.start()

    @pytest.mark.long
    @pytest.mark.busy
    @needs_bubblewrap
    def test_a_sandbox_that_was_killed_between_two_students_is_started_again(self):
        with Sandbox(LESSON, "required", LIMITS) as box:
            assert printed(box.start(), "print(1)") == "1"
            box._zygote.kill()
            box._zygote.wait()
            assert printed(box.start(), "print(2)") == "2"


def _ends(pid, seconds=600):
    """Whether a process ends, by itself or by others: what loops for ever would not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":  # whoever adopted it has not looked yet
            return True
        time.sleep(0.01)
    return False


@pytest.mark.busy
class TestUnprotected:
    """Without namespaces nothing but the processes themselves sees to it that they end."""

    @pytest.mark.long
    def test_what_still_imports_ends_with_its_grader(self, tmp_path):
        told = tmp_path / "pid"
        (tmp_path / "slow.py").write_text(
            "import os, time\n"
            f"with open({str(told)!r}, 'w') as file:\n"
            "    file.write(f'{os.getpid()}\\n')\n"
            "time.sleep(60)\n"
        )
        script = (
            "from autograder.sandbox import bubblewrap, sandbox, visible_files\n"
            "visible_files.imported_first = lambda _: ['slow']\n"
            "real = bubblewrap.environment\n"
            "def environment(*arguments):\n"
            "    made = real(*arguments)\n"
            f"    return {{**made, 'PYTHONPATH': made['PYTHONPATH'] + ':' + {str(tmp_path)!r}}}\n"
            "bubblewrap.environment = environment\n"
            f"sandbox.Sandbox({LESSON!r}, 'off').start()\n"
        )
        grader = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
        while not (told.exists() and told.read_text().endswith("\n")):
            assert grader.poll() is None
            time.sleep(0.01)
        grader.kill()
        grader.wait()
        assert _ends(int(told.read_text()))

    @pytest.mark.long
    def test_an_endless_loop_ends_with_its_sandbox(self):
        with Sandbox(LESSON, "off") as box:
            process = box.start()
            pid = int(process.run("import os; os.getpid()")["shown"])
            process._channel.send({"id": 0, "do": "run", "source": "while True: pass"})
        assert _ends(pid)

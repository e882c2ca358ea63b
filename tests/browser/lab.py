"""Drive the course in a real browser: a JupyterLab server on a copy of the course, and Chromium.

The tests of this folder and docs/make_pictures.py use it.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import nbformat

from tests import needs
from tests.waiting import LONG, until

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
SETTINGS = {
    # No question about news on the first start; all cells stay in the page while one scrolls.
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}


@contextlib.contextmanager
def chromium():
    """Start a headless Chromium; gives a function: ``with opened() as page``, a new user's each."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        program = needs.program("chromium")
        browser = playwright.chromium.launch(
            executable_path=program, args=arguments, timeout=1000 * LONG
        )

        @contextlib.contextmanager
        def opened(width=1280, height=1000, scale=1):
            size = {"width": width, "height": height}
            context = browser.new_context(viewport=size, device_scale_factor=scale)
            context.set_default_timeout(1000 * LONG)
            try:
                yield context.new_page()
            finally:
                context.close()

        try:
            yield opened
        finally:
            browser.close()


@contextlib.contextmanager
def browser_page(**size):
    """Open a page in a headless Chromium of its own."""
    with chromium() as opened, opened(**size) as page:
        yield page


@contextlib.contextmanager
def alone(browser, path, query=""):
    """A page of one file, opened; by the end it has asked for nothing else and reported no fault.

    What it asked for is in page.asked, what it reported in page.said.
    """
    with browser() as page:
        page.asked, page.said, page.address = [], [], path.as_uri()
        page.on("requestfinished", lambda one: page.asked.append(re.split(r"[?#]", one.url)[0]))
        page.on("requestfailed", lambda one: page.said.append(f"{one.failure}: {one.url}"))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.goto(page.address + query)
        yield page
        assert set(page.asked) == {page.address}
        assert page.said == []


def axe(page, context=None, rules=None, minor=True):
    """What axe finds in the page or in a part of it, rule and place; ``minor`` faults as well."""
    needs.skip_without("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    only = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    options = {**only, "resultTypes": ["violations"]}
    found = Axe().run(page, context=context, options=options).response["violations"]
    return [
        (one["id"], node["html"], node["failureSummary"])
        for one in found
        if minor or one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def copy_course(folder):
    """Copy the course into ``folder``, without the data of a class."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("attention", "autograder", "lessons", "solutions", "source"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in ("nbgrader_config.py", "autograder.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def notebook_path(course, slug, kind="lessons"):
    """Path of a lesson's notebook in the course: the learner's, or the one in 'solutions'."""
    return course / kind / slug / f"{slug}.ipynb"


def solve(path, solved_path, leave_blank=()):
    """Write the right answers into the notebook at ``path``, but for some exercises."""
    notebook = nbformat.read(path, as_version=4)
    right = {cell.id: cell.source for cell in nbformat.read(solved_path, as_version=4).cells}
    for cell in notebook.cells:
        graded = cell.metadata.get("nbgrader", {})
        if graded.get("solution") and graded["grade_id"] not in leave_blank:
            cell.source = right[cell.id]
    nbformat.write(notebook, path)


def points(path):
    """Points by grade_id of the checks in the notebook at ``path``."""
    graded = [cell.metadata.get("nbgrader", {}) for cell in nbformat.read(path, as_version=4).cells]
    return {cell["grade_id"]: cell["points"] for cell in graded if cell.get("grade")}


def environment(home):
    """Environment variables under which nothing of the user's own Jupyter set-up is seen."""
    folders = {
        "HOME": home,
        "IPYTHONDIR": home / "ipython",
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
    }
    return {**os.environ, **{name: str(path) for name, path in folders.items()}}


@contextlib.contextmanager
def jupyter_lab(course, home):
    """Run ``jupyter lab`` on the folder ``course``; gives its address, which ends in '/'."""
    for name, settings in SETTINGS.items():
        path = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(settings))
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    command = [PROGRAMS / "jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token="]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={course}"]
    command += [f"--MappingKernelManager.kernel_info_timeout={LONG}"]
    log = home / "jupyter.log"
    with log.open("w") as stream:
        server = subprocess.Popen(
            command,
            cwd=course,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until_up(f"{address}api/status", server, log)
            yield address
        finally:
            _stop(server)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_up(address, server, log):
    """Wait until a server that was started answers; if it ends instead, say what is in its log."""

    def answers():
        assert server.poll() is None, "the server has ended"
        with contextlib.suppress(OSError):
            urllib.request.urlopen(address, timeout=LONG).close()
            return True

    try:
        until(answers, f"{address} to answer", pause=0.2)
    except (AssertionError, TimeoutError) as error:
        error.add_note(log.read_text()[-3000:])
        raise


def _stop(server):
    """Let the server end its kernels, and insist if it does not."""
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(timeout=LONG)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def open_lesson(page, address, slug, alone=False):
    """Open a lesson in JupyterLab, ``alone`` without side bars, and wait for its kernel."""
    page.goto(f"{address}{'doc' if alone else 'lab'}/tree/lessons/{slug}/{slug}.ipynb?reset")
    page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for()
    page.locator("#jp-main-statusbar").get_by_text("(ipykernel) | Idle").wait_for()


def cell_with(page, text):
    """The code cell that contains ``text``."""
    return page.locator(".jp-NotebookPanel .jp-CodeCell").filter(has_text=text).first


def write_answer(page, name, body):
    """Type ``body``, one line, over the last line of the exercise ``name``."""
    cell_with(page, f"def {name}(").locator(".jp-InputArea .cm-line").last.click()
    page.keyboard.press("Home")  # to the first letter: the indentation stays
    page.keyboard.press("Shift+End")
    page.keyboard.type(body)


def run_cell(page, cell):
    """Select the cell, run it, and wait until it is done; gives its output's text."""
    prompt = cell.locator(".jp-InputPrompt").first
    prompt.wait_for()
    before, asked = prompt.inner_text(), itertools.count()

    def begins():
        if next(asked) % 50 == 0:  # JupyterLab drops a key that comes while it is still starting
            prompt.click()
            page.keyboard.press("Control+Enter")
        return prompt.inner_text() != before

    until(begins, f"this cell to begin: {cell.inner_text()}", pause=0.1)
    _wait_for_end(cell)
    outputs = cell.locator(".jp-OutputArea-output")
    until(lambda: all(_is_drawn(one) for one in outputs.all()), "the outputs to be drawn")
    return "\n".join(outputs.all_inner_texts())


def _is_drawn(output):
    return output.inner_text().strip() or output.locator("img, svg, canvas").count()


def run_all(page, last):
    """Choose *Run All Cells* in the menu, and wait until the cell ``last`` has run."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    _wait_for_end(last)


def _wait_for_end(cell):
    prompt = cell.locator(".jp-InputPrompt").first
    numbered = re.compile(r"\d")
    until(lambda: numbered.search(prompt.inner_text()), f"this cell to end: {cell.inner_text()}")

"""A student and an instructor on a JupyterHub, from release to feedback, in a real browser.

The hub has two system accounts and namespaces of its own: nothing of the machine changes. It is
started as docs/jupyterhub says, with its configuration; only who may log in and the ports differ.
Accounts, homes and the exchange are real to what runs there: a student's processes have a student's
rights.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.releasing.write import release
from tests import needs
from tests.browser import lab

pytestmark = [
    pytest.mark.browser,
    needs.needs("bubblewrap"),
    needs.needs("node-configurable-http-proxy"),
    needs.needs("jupyterhub"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may start other users' servers"),
]

SLUG = "00_getting_started"
LEFT_OUT = "softmax"  # this exercise stays as it was handed out

PAGES = lab.ROOT / "docs" / "jupyterhub"
USERS = {"instructor": 60001, "ada": 60002}
KEPT = ("/usr", "/bin", "/lib", "/lib64", "/sbin")  # of the system, read-only
KEPT_OF_ETC = ("alternatives", "hosts", "ld.so.cache", "localtime", "nsswitch.conf", "ssl")
LOGIN = """
load_subconfig("/srv/hub/jupyterhub_config.py")
c = get_config()
c.JupyterHub.authenticator_class = "dummy"  # no password: in these namespaces there is no one else
c.JupyterHub.bind_url = "http://127.0.0.1:{}"
c.JupyterHub.hub_port = {}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{}"
"""


def prepare(folder, released):
    """Lay out accounts, homes, the course and the exchange as docs/jupyterhub asks for."""
    etc, homes, hub = folder / "etc", folder / "home", folder / "hub"
    for place in (etc / "jupyter", hub, folder / "exchange", *(homes / name for name in USERS)):
        place.mkdir(parents=True)
    people = [f"{name}:x:{number}:" for name, number in USERS.items()]
    users = [f"{line}{line.split(':')[2]}::/home/{line.split(':')[0]}:/bin/bash" for line in people]
    (etc / "passwd").write_text("\n".join(["root:x:0:0::/root:/bin/bash", *users, ""]))
    (etc / "group").write_text("\n".join(["root:x:0:", *people, ""]))
    shutil.copy(PAGES / "nbgrader_config.py", etc / "jupyter")
    students = made(etc / "jupyter" / "students" / "labconfig") / "page_config.json"
    pages = lab.ROOT / "autograder" / "releasing" / "pages"
    shutil.copy(pages / "jupyterlab_for_students.json", students)
    shutil.copy(PAGES / "jupyterhub_config.py", hub)
    lab.copy_course(made(homes / "instructor" / "course"))
    shutil.copytree(lab.ROOT / "data", homes / "instructor" / "course" / "data")
    own = made(homes / "instructor" / ".jupyter")
    shutil.copy(PAGES / "instructor_nbgrader_config.py", own / "nbgrader_config.py")
    for home in homes.iterdir():
        for path in (home, *home.rglob("*")):
            os.chown(path, USERS[home.name], USERS[home.name])
        home.chmod(0o700)
    (folder / "exchange").chmod(0o777)
    folder.chmod(0o755)
    return {
        "/home": homes,
        "/srv/attention": released,
        "/srv/nbgrader/exchange": folder / "exchange",
        "/srv/hub": hub,
        **{f"/etc/{name}": etc / name for name in ("jupyter", "passwd", "group")},
    }


def made(folder):
    folder.mkdir(parents=True)
    return folder


@contextlib.contextmanager
def jupyter_hub(folder, places):
    """Run the hub; gives its address, which ends in '/'."""
    ports = [lab.free_port() for _ in range(3)]
    (places["/srv/hub"] / "here.py").write_text(LOGIN.format(*ports))
    log = folder / "hub.log"
    with log.open("w") as stream:
        command = [*walls(places), "jupyterhub", "-f", "here.py"]
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
        try:
            address = f"http://127.0.0.1:{ports[0]}/"
            lab.wait_until_up(f"{address}hub/login", server, log)
            yield address
        finally:
            server.kill()  # and with it all that runs in its namespaces
            server.wait()


def walls(places):
    """Bubblewrap's arguments: what the machine has to run programs, and ``places``."""
    environment = Path(sys.prefix)
    # A /proc of its own, which bubblewrap's --proc would cover in part: then the kernel would let
    # no user of the hub mount one for a sandbox.
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command += [needs.program("bubblewrap"), "--die-with-parent", "--cap-add", "ALL"]
    command += ["--bind", "/proc", "/proc"]
    command += ["--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
    kept = [*KEPT, *(f"/etc/{name}" for name in KEPT_OF_ETC), environment, sys.base_prefix]
    for path in filter(os.path.exists, kept):
        command += [*parents(path), "--ro-bind", str(path), str(path)]
    for inside, path in places.items():
        command += [*parents(inside), "--bind", str(path), inside]
    variables = {
        "ENVIRONMENT": environment,
        "NODE_PATH": "/usr/share/nodejs",  # Debian's modules, also for a node that is not Debian's
        "PATH": f"{environment}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/srv/hub",
        "LANG": "C.UTF-8",
    }
    command += ["--clearenv"]
    for name, value in variables.items():
        command += ["--setenv", name, str(value)]
    return [*command, "--chdir", "/srv/hub"]


def parents(path):
    """Folders above a place, which everybody may enter there."""
    above = [str(folder) for folder in reversed(Path(path).parents) if str(folder) != "/"]
    made = [folder for folder in above if not folder.startswith(KEPT)]
    return [word for folder in made for word in ("--perms", "0755", "--dir", folder)]


def log_in(page, address, name):
    """Log in as ``name``, whoever was before, and wait for JupyterLab."""
    page.context.clear_cookies()
    page.goto(f"{address}hub/login")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill("not asked for")
    page.get_by_role("button", name="Sign in").click()
    page.locator("#jp-main-statusbar").wait_for()


def nbgrader(page, entry):
    """Choose an entry of JupyterLab's menu Nbgrader."""
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name=entry).first.click()


def formgrader(page):
    """Open formgrader; gives its frame, on the page of all assignments."""
    nbgrader(page, "Formgrader")
    form = page.frame_locator("iframe")
    form.get_by_role("row", name=SLUG).wait_for()
    return form


def press(form, row, column):
    """Press formgrader's button in the ``column`` of a row, and wait for its success."""
    form.get_by_role("row", name=row).locator(f"td.{column} a").click()
    dialog = form.locator(".modal.in")
    dialog.get_by_text(re.compile("success", re.IGNORECASE)).first.wait_for()
    dialog.get_by_role("button", name="Close").last.click()
    dialog.wait_for(state="detached")


def hand_out(page):
    form = formgrader(page)
    press(form, SLUG, "assign")
    press(form, SLUG, "release")


def fetch(page):
    nbgrader(page, "Assignment List")
    page.get_by_role("button", name="Fetch", exact=True).click()
    page.get_by_role("button", name="Submit", exact=True).wait_for()


def solve(page, address, home):
    """Solve all but one exercise; that one, in the browser: what the check says of it."""
    path = home / SLUG / f"{SLUG}.ipynb"
    owner = path.stat().st_uid
    lab.solve(path, lab.notebook_path(lab.ROOT, SLUG, "solutions"), leave_blank={LEFT_OUT})
    os.chown(path, owner, owner)
    page.goto(f"{address}user/ada/lab/tree/{SLUG}/{SLUG}.ipynb?reset")
    page.locator("#jp-main-statusbar").get_by_text("(ipykernel) | Idle").wait_for()
    lab.run_cell(page, lab.cell_with(page, "import torch"))
    lab.run_cell(page, lab.cell_with(page, f"def {LEFT_OUT}("))
    return lab.run_cell(page, lab.cell_with(page, f"check.{LEFT_OUT}("))


def submit(page, address):
    page.goto(f"{address}user/ada/lab?reset")
    nbgrader(page, "Assignment List")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_text(re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")).first.wait_for()


def grade(page, address):
    """Collect, grade and give back, with formgrader's buttons; the score that it shows."""
    page.goto(f"{address}user/instructor/lab?reset")
    form = formgrader(page)
    press(form, SLUG, "collect")
    form.get_by_role("row", name=SLUG).locator("td.num-submissions a").click()
    press(form, "ada", "autograde")
    row = form.get_by_role("row", name="ada")  # is asked for again after the dialog of success
    score = row.locator("td.score", has_text=re.compile(r"\d")).inner_text()
    press(form, "ada", "generate-feedback")
    press(form, "ada", "release-feedback")
    return score


def read_feedback(page, address, home):
    """Fetch the feedback; the text of its page."""
    page.goto(f"{address}user/ada/lab?reset")
    nbgrader(page, "Assignment List")
    page.get_by_role("button", name="Fetch Feedback").click()
    page.get_by_text("view feedback").first.wait_for()
    (found,) = home.glob(f"{SLUG}/feedback/*/{SLUG}.html")
    return found.read_text(encoding="utf-8")


@pytest.mark.long
def test_a_class_on_a_hub_from_release_to_feedback(browser, tmp_path):
    release(["00"], tmp_path / "released")
    places = prepare(tmp_path, tmp_path / "released")
    home = places["/home"] / "ada"
    points = lab.points(lab.notebook_path(lab.ROOT, SLUG))
    total, lost = sum(points.values()), points[f"check_{LEFT_OUT}"]
    with jupyter_hub(tmp_path, places) as address, browser() as page:
        log_in(page, address, "instructor")
        page.get_by_role("tab", name="Create Assignment").wait_for()
        hand_out(page)
        log_in(page, address, "ada")
        assert not page.get_by_role("tab", name="Create Assignment").count()
        fetch(page)
        assert f"{LEFT_OUT}: nothing here yet" in solve(page, address, home)
        submit(page, address)
        log_in(page, address, "instructor")
        assert grade(page, address) == f"{total - lost} / {total}"
        log_in(page, address, "ada")
        assert f"{LEFT_OUT}: nothing here yet" in read_feedback(page, address, home)

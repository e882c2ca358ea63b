"""A JupyterHub with two system accounts, in namespaces of its own: nothing of the machine changes.

The hub is started as docs/jupyterhub says, with its configuration. Only who may log in and the
ports differ. Accounts, homes and the exchange are real to what runs there: a student's processes
have a student's rights.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests import needs
from tests.browser import lab

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
    students = _made(etc / "jupyter" / "students" / "labconfig") / "page_config.json"
    pages = lab.ROOT / "autograder" / "releasing" / "pages"
    shutil.copy(pages / "jupyterlab_for_students.json", students)
    shutil.copy(PAGES / "jupyterhub_config.py", hub)
    lab.copy_course(_made(homes / "instructor" / "course"))
    shutil.copytree(lab.ROOT / "data", homes / "instructor" / "course" / "data")
    own = _made(homes / "instructor" / ".jupyter")
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


def _made(folder):
    folder.mkdir(parents=True)
    return folder


@contextlib.contextmanager
def jupyter_hub(folder, places):
    """Run the hub; gives its address, which ends in '/'."""
    ports = [lab.free_port() for _ in range(3)]
    (places["/srv/hub"] / "here.py").write_text(LOGIN.format(*ports))
    log = folder / "hub.log"
    with log.open("w") as stream:
        command = [*_walls(places), "jupyterhub", "-f", "here.py"]
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


def _walls(places):
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
        command += [*_parents(path), "--ro-bind", str(path), str(path)]
    for inside, path in places.items():
        command += [*_parents(inside), "--bind", str(path), inside]
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


def _parents(path):
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

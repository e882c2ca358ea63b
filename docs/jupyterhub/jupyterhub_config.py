"""JupyterHub for a class on one machine. docs/jupyterhub/README.md says how to set it up.

Each of the places and names below may be given by an environment variable of the same name.
"""

import os
import pwd

INSTRUCTORS = set(os.environ.get("INSTRUCTORS", "instructor").split())
ENVIRONMENT = os.environ.get("ENVIRONMENT", "/opt/attention")  # with the course's dependencies
RELEASE = os.environ.get("RELEASE", "/srv/attention")  # what `autograder release` wrote
STUDENTS = os.environ.get("STUDENTS", "/etc/jupyter/students")  # settings for them alone
COURSE = os.environ.get("COURSE", "course")  # this repository, in an instructor's home
# Formgrader shows itself in a frame, which JupyterHub forbids unless it is told otherwise.
POLICY = {"headers": {"Content-Security-Policy": "frame-ancestors 'self'"}}
FRAMES = f"--ServerApp.tornado_settings={POLICY}"


def prepare(spawner):
    """Give a student the library of the release, and an instructor that of the repository."""
    teaches = spawner.user.name in INSTRUCTORS
    home = pwd.getpwnam(spawner.user.name).pw_dir
    spawner.environment["PYTHONPATH"] = os.path.join(home, COURSE) if teaches else RELEASE
    if not teaches:
        spawner.environment["JUPYTER_CONFIG_PATH"] = STUDENTS
    spawner.args = [FRAMES] if teaches else []


c = get_config()  # noqa: F821  (JupyterHub provides it)
c.JupyterHub.spawner_class = "localprocess"  # a process of the user's own system account
c.Spawner.pre_spawn_hook = prepare
c.Spawner.cmd = [f"{ENVIRONMENT}/bin/jupyterhub-singleuser"]
c.Spawner.default_url = "/lab"
c.Spawner.environment = {
    "PATH": f"{ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin",  # nbgrader calls alembic by its name
    "OMP_NUM_THREADS": "1",  # PyTorch's threads would keep shared cores busy by waiting
}
c.Spawner.http_timeout = c.Spawner.start_timeout = 600  # seconds; JupyterLab's first start is slow
c.Authenticator.allow_all = True  # every account of this system; else name them in allowed_users
c.Authenticator.admin_users = INSTRUCTORS

"""Run a command and report what it leaves behind: processes, files, connections, changes.

A program of its own, ``python watch.py SETTINGS.json``, because it adopts every process that the
command's descendants leave.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time

import psutil

SUBREAPER = 36
GRACE = 5.0  # seconds in which honest helpers of the command may still end
SKIPPED = ("proc", "sys", "site-packages", "node_modules", ".git", "submitted")


class Ears:
    """Waits for connections on the traps, and knocks where an attack may listen."""

    def __init__(self, traps):
        self.heard = []
        self._knock = traps["knock"]
        tcp = socket.create_server(("", traps["port"]))
        local = socket.socket(socket.AF_UNIX)
        local.bind("\0" + traps["socket"])
        local.listen()
        for server in (tcp, local):
            threading.Thread(target=self._listen, args=(server,), daemon=True).start()
        threading.Thread(target=self._try, daemon=True).start()

    def _listen(self, server):
        while True:
            connection, _ = server.accept()
            connection.settimeout(2)
            try:
                said = connection.recv(100).decode("utf-8", "replace")
            except OSError:
                said = ""
            self.heard.append(f"connection: {said or 'silent'}")
            connection.close()

    def _try(self):
        while True:
            time.sleep(0.3)
            try:
                with socket.create_connection(("127.0.0.1", self._knock), 0.3) as connection:
                    connection.settimeout(1)
                    self.heard.append(f"listener: {connection.recv(100).decode() or 'silent'}")
                    time.sleep(1)
            except OSError:
                pass


class Scale:
    """Watches how much memory the command's own processes hold, students' not counted.

    One that holds more than ``most`` MiB is killed, so that this machine stays alive.
    """

    def __init__(self, most):
        self.peak, self._most, self.killed = 0, most, []
        self._own = os.readlink("/proc/self/ns/pid")
        threading.Thread(target=self._weigh, daemon=True).start()

    def _weigh(self):
        while True:
            for one in descendants():
                with contextlib.suppress(OSError, psutil.Error):
                    if os.readlink(f"/proc/{one.pid}/ns/pid") == self._own:
                        held = most_held(one.pid)
                        self.peak = max(self.peak, held)
                        if held > self._most:
                            one.kill()
                            self.killed.append(f"memory: the grader held {held} MiB")
            time.sleep(0.05)


def most_held(pid):
    """MiB that a process held at most."""
    with open(f"/proc/{pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields.get("VmHWM", "0 kB").split()[0]) // 1024


def descendants():
    """All processes below this one."""
    return psutil.Process().children(recursive=True)


def survivors():
    """What still runs some time after the command has ended, which is then killed."""
    found = []
    psutil.wait_procs(descendants(), GRACE)
    for one in descendants():
        with contextlib.suppress(OSError, psutil.Error), open(f"/proc/{one.pid}/comm") as name:
            found.append(f"process: {name.read().strip()} ({' '.join(one.cmdline())[:80]})")
            one.kill()
    return found


def marked_files(folders):
    """Paths below ``folders`` whose names bear an attack's mark."""
    found = []
    for top in folders:
        for folder, below, names in os.walk(top):
            if folder.count("/") - top.count("/") > 4:
                below.clear()
            found += [
                f"file: {os.path.join(folder, name)}"
                for name in [*names, *below]
                if name.startswith(("attack-", "relay-"))
            ]
            below[:] = [name for name in below if name not in SKIPPED]
    return sorted(set(found))


def digests(folders):
    """Digest of every regular file below ``folders``, by path."""
    found = {}
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as stream:
                        found[path] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def run(settings):
    """Run the command of ``settings`` under watch; return the report."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    ears, scale = Ears(settings["traps"]), Scale(settings["most_mib"])
    before = digests(settings["unchanged"])
    start = time.monotonic()
    with open(settings["output"], "wb") as output:
        command = subprocess.Popen(
            settings["command"],
            cwd=settings["cwd"],
            env={**os.environ, **settings["environment"]},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            status = command.wait(settings["seconds"])
        except subprocess.TimeoutExpired:
            command.kill()
            status = "out of time"
    seconds = round(time.monotonic() - start, 2)
    left = survivors()
    after = digests(settings["unchanged"])
    changed = sorted(path for path in before | after if before.get(path) != after.get(path))
    return {
        "status": status,
        "seconds": seconds,
        "peak_mib": scale.peak,
        "traces": [
            *left,
            *scale.killed,
            *marked_files(settings["folders"]),
            *ears.heard,
            *(f"changed: {path}" for path in changed),
        ],
    }


if __name__ == "__main__":
    with open(sys.argv[1]) as stream:
        wanted = json.load(stream)
    report = run(wanted)
    with open(wanted["report"], "w") as stream:
        json.dump(report, stream)

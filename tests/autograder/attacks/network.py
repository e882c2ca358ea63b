"""Connections: out, in, and to whatever listens on the machine."""

from .paper import attacks

BURGLARS = {
    # A server on the grader's localhost, reached by IPv4, IPv6 and every local address.
    "call_the_machine": """
        def call(host):
            with socket.create_connection((host, @PORT@), 1) as connection:
                connection.sendall(b"@MARK@")

        def won():
            return any_of(call, ["127.0.0.1", "0.0.0.0", "localhost", socket.gethostname(), "::1"])
    """,
    # An abstract Unix socket, which no file permission and no mount guards.
    "abstract_socket": """
        def won():
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect("\\0@SOCKET@")
                connection.sendall(b"@MARK@")
            return True
    """,
    # The sockets of Docker, D-Bus, systemd, X11, PostgreSQL and everything in /run and /tmp.
    "unix_sockets_on_disk": """
        def call(path):
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                return False
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)

        def won():
            stop = time.monotonic() + 3
            for root in ("/run", "/var/run", "/tmp", "/var/lib", os.path.expanduser("~")):
                for folder, _, names in os.walk(root):
                    if any_of(call, [os.path.join(folder, name) for name in names]):
                        return True
                    if time.monotonic() > stop:
                        return False
            return False
    """,
}
attacks(__name__, "burglar", BURGLARS)

CELLS = {
    # A server opened by the notebook, for an accomplice on the same network to connect to.
    "listen_on_the_machine": """
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("0.0.0.0", @KNOCK@))
        server.listen()

        def serve():
            while True:
                connection, _ = server.accept()
                connection.sendall(b"@MARK@")
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        time.sleep(2)
    """,
}
attacks(__name__, "first", CELLS)

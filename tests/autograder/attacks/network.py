"""Connections: out, in, and to whatever listens on the machine."""

from .paper import attack


@attack
def call_the_internet(paper):
    """TCP, UDP and name look-ups to the outside: the answers could come from there."""
    paper.burglar("""
        import socket

        def won():
            socket.setdefaulttimeout(1)
            for address in (("1.1.1.1", 443), ("8.8.8.8", 53), ("169.254.169.254", 80)):
                try:
                    socket.create_connection(address, 1).close()
                    return True
                except OSError:
                    pass
            try:
                socket.getaddrinfo("pypi.org", 443)
                return True
            except OSError:
                return False
    """)


@attack
def call_the_machine(paper):
    """A server on the grader's localhost, reached by IPv4, IPv6 and every local address."""
    paper.burglar("""
        import socket

        def won():
            hosts = ["127.0.0.1", "0.0.0.0", "localhost", socket.gethostname(), "::1"]
            for host in hosts:
                try:
                    with socket.create_connection((host, @PORT@), 1) as connection:
                        connection.sendall(b"@MARK@")
                        return True
                except OSError:
                    pass
            return False
    """)


@attack
def abstract_socket(paper):
    """An abstract Unix socket, which no file permission and no mount guards."""
    paper.burglar("""
        import socket

        def won():
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect("\\0@SOCKET@")
                connection.sendall(b"@MARK@")
            return True
    """)


@attack
def unix_sockets_on_disk(paper):
    """The sockets of Docker, D-Bus, systemd, X11, PostgreSQL and everything in /run and /tmp."""
    paper.burglar("""
        import socket
        import stat
        import time

        def won():
            stop = time.monotonic() + 3
            for root in ("/run", "/var/run", "/tmp", "/var/lib", os.path.expanduser("~")):
                for folder, _, names in os.walk(root):
                    for name in names:
                        path = os.path.join(folder, name)
                        try:
                            if stat.S_ISSOCK(os.lstat(path).st_mode):
                                with socket.socket(socket.AF_UNIX) as connection:
                                    connection.connect(path)
                                    return True
                        except OSError:
                            pass
                    if time.monotonic() > stop:
                        return False
            return False
    """)


@attack
def listen_on_the_machine(paper):
    """A server opened by the notebook, for an accomplice on the same network to connect to."""
    paper.first("""
        import os
        import socket
        import threading

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
        import time
        time.sleep(2)
    """)


@attack
def other_families(paper):
    """Netlink, packet, vsock and raw sockets."""
    paper.burglar("""
        import socket

        def won():
            for family, kind, protocol in (
                (socket.AF_PACKET, socket.SOCK_RAW, 0),
                (socket.AF_INET, socket.SOCK_RAW, 1),
                (socket.AF_VSOCK, socket.SOCK_STREAM, 0),
            ):
                try:
                    with socket.socket(family, kind, protocol) as made:
                        made.settimeout(1)
                        if family == socket.AF_VSOCK:
                            made.connect((2, 22))
                        elif family == socket.AF_PACKET:
                            others = [name for _, name in socket.if_nameindex() if name != "lo"]
                            made.bind((others[0], 3))
                        else:
                            made.sendto(b"@MARK@", ("1.1.1.1", 0))
                    return True
                except (OSError, IndexError):
                    pass
            return False
    """)

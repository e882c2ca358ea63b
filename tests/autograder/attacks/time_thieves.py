"""Time that nobody would be charged with: slept where it looks like work, worked unseen."""

from .paper import attack


@attack(stock=False)
def waits_in_a_vfork(paper):
    """Uninterruptible sleep, as that of who waits for a disk, until a sleeping child ends."""
    paper.first("""
        import ctypes
        import time

        if ctypes.CDLL(None).syscall(56, 0x4000 | 17, 0, 0, 0, 0) == 0:
            with open("/proc/self/comm", "w") as stream:
                stream.write("@MARK@"[:15])
            time.sleep(60)
    """)


@attack(stock=False)
def children_that_nobody_waits_for(paper):
    """Work in children that end between two looks and whose time goes to no parent."""
    paper.first("""
        import os
        import signal
        import time

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        stop = time.monotonic() + 60
        while time.monotonic() < stop:
            if os.fork() == 0:
                while time.process_time() < 0.045:
                    pass
                os._exit(0)
            try:
                os.wait()
            except ChildProcessError:
                pass
    """)

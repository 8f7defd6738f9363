"""What processes that load data leave behind: nothing, however they and their worker end."""

from __future__ import annotations

import functools
import os
from multiprocessing import util


@functools.cache
def share_temporary_folder() -> None:
    """Give all loaders of this process one temporary folder, removed when the last of them ends.

    ``multiprocessing`` gives each process that passes arrays on a folder of its own for a socket,
    which the process removes at its end. A process that is killed never does, nor do MXNet's
    loaders, which their pool terminates. Processes that are forked later use the folder that is
    there.
    """
    folder = util.get_temp_dir()
    # The shell's input ends when no process has the other end any more, whatever ended them: this
    # one keeps it for good, and what it forks inherits it.
    read_end, _ = os.pipe()
    os.posix_spawnp(
        "sh",
        ["sh", "-c", 'cat; rm -rf -- "$0"', folder],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, read_end, 0)],
        setsid=True,
    )
    os.close(read_end)

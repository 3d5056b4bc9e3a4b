"""Where this machine keeps what can be computed again.

The one place below the command line that reads the environment. The folder decides where reusable results lie
and never what they are: it enters no key and no artifact, so two users with different folders get equal
bytes.
"""

import os
import pwd
from pathlib import Path

from compiler.errors import StoreError


def cache_home() -> Path:
    """The folder for what may be lost: `$XDG_CACHE_HOME/tilewright`, else `~/.cache/tilewright`.

    A relative `XDG_CACHE_HOME` is ignored, as the XDG base directory specification demands. So is a relative
    or empty `HOME`, which would scatter caches over working folders; the user's entry in the system's list of
    users then says where home is. The folder need not exist.

    Raises:
        StoreError: none of them names a folder.
    """
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if configured.is_absolute():
        return configured / "tilewright"
    home = Path(os.environ.get("HOME", ""))
    if not home.is_absolute():
        try:
            home = Path(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            home = Path()
    if not home.is_absolute():
        raise StoreError(
            "neither XDG_CACHE_HOME nor HOME names an absolute path, and the system does not know this user",
            stage="store",
            subject="the user's cache folder",
            next_step="set XDG_CACHE_HOME to a folder, or give one where the command takes it",
        )
    return home / ".cache" / "tilewright"

"""Where this machine keeps what can be computed again.

The one place below the command line that reads the environment. The folder decides where reusable results lie
and never what they are: it enters no key and no artifact, so two users with different folders get equal
bytes.
"""

import os
from pathlib import Path


def cache_home() -> Path:
    """The folder for what may be lost: `$XDG_CACHE_HOME/tilewright`, else `~/.cache/tilewright`.

    A relative `XDG_CACHE_HOME` is ignored, as the XDG base directory specification demands. The folder need
    not exist.
    """
    configured = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return home / "tilewright"

"""The logger of rowtime. Applications configure it; the package itself adds no handler and sets no level.

Each record has attributes besides the message: ``event`` says in a word or two what happened, the others are figures
(docs/observing.md lists them).
"""

from __future__ import annotations

import logging
from typing import Final

LOG: Final = logging.getLogger("rowtime")

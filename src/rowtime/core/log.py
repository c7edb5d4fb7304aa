"""The logger of rowtime. Applications configure it; the package itself adds no handler and sets no level.

Each record has attributes of its own beside the message: ``event`` says what happened in a word or two, the others are
its figures (docs/observing.md lists them).
"""

from __future__ import annotations

import logging
from typing import Final

LOG: Final = logging.getLogger("rowtime")

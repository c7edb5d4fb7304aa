"""``python -m reliability.crash``: deaths, faults and second drivers (``make crash``)."""

import sys

from reliability.crash.campaign import main

if __name__ == "__main__":
    sys.exit(main())

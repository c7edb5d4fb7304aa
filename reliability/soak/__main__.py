"""``python -m reliability.soak``: one query at work for an hour, measured (``make soak``)."""

import sys

from reliability.soak.campaign import main

if __name__ == "__main__":
    sys.exit(main())

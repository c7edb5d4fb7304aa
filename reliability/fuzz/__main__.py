"""``python -m reliability.fuzz``: random input for everything that reads what others wrote (``make fuzz``)."""

import sys

from reliability.fuzz.campaign import main

if __name__ == "__main__":
    sys.exit(main())

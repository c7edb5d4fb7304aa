"""``python -m reliability.crash``: deaths, faults and second drivers (``make crash``)."""

import faulthandler
import signal
import sys

from reliability.crash.campaign import main

if __name__ == "__main__":
    faulthandler.register(signal.SIGTERM, chain=True)  # if a time limit ends it, the log shows what each thread did
    sys.exit(main())

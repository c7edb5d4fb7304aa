"""``python -m conformance``: others' tests and random pipelines (``make conformance``)."""

import sys

from conformance.campaign import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m reliability.cluster``: pipelines on a cluster whose workers are killed (``make cluster``)."""

import sys

from reliability.cluster.campaign import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m reliability.model``: check the model of the commit, and that each of its guards is needed."""

from __future__ import annotations

from reliability.model.campaign import main

if __name__ == "__main__":
    raise SystemExit(main())

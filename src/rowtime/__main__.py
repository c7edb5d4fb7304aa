"""``python -m rowtime`` is the command ``rowtime``."""

from rowtime.cli.main import main

main()

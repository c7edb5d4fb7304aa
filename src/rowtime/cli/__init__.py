"""The command line, one module a command or group of commands; `main.main` is ``rowtime``."""

"""Object stores for tests and crashes: servers of this machine, and a proxy that stops, throttles, slows and loses."""

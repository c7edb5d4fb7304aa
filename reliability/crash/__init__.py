"""Deaths, faults and second drivers: the result equals that of an undisturbed run (``make crash``)."""

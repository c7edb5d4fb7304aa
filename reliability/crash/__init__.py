"""Deaths, faults and second drivers: what they leave equals what an undisturbed run leaves (``make crash``)."""

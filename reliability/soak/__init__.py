"""An hour at a steady rate, in which nothing grows and no row is lost (``make soak``)."""

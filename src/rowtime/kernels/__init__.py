"""The loops of rowtime: numpy over whole columns, without a Python call per row."""

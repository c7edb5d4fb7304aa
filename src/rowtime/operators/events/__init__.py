"""Events with lifetimes: their gate, the operators that combine them, and their output."""

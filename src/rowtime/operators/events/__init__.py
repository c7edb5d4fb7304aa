"""Events with lifetimes: their gate, what combines them, and how they leave."""

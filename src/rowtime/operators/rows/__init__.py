"""What looks at each row by itself, and what operators of every family compute with."""

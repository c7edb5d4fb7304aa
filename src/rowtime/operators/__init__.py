"""The operators of a streaming plan: a file each, in rooms by family; `contract` says what an operator is."""

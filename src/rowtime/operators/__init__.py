"""The operators of a streaming plan: one file each, in folders by family; `contract` defines what an operator is."""

"""The request that is being answered: whose it is, how old, and when it has its turn."""

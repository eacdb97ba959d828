"""The items of share groups on pages: figures, lists, and what operators choose."""

"""Items of share groups: acquire, settle, and what operators do with them."""

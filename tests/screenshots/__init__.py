"""`make screenshots`: the pictures of the README and the docs, taken of a showcase in real Chromium."""

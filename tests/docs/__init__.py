"""The documentation, checked against the code: citations resolve, links lead somewhere, generated parts are current.

`python -m tests.docs` writes the generated parts again: the index of `docs/specification/README.md`, the diagrams of
`docs/specification/states.md`, and the marks of the code in `docs/differences.md`. `citations` says how rules are
cited.
"""

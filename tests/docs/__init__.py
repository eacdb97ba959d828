"""The documentation, checked against the code: citations resolve, links lead somewhere, generated parts are current.

`python -m tests.docs` writes the generated parts again: the index of `docs/specification/README.md` and the diagrams of
`docs/specification/states.md`. How rules are cited, `citations` says.
"""

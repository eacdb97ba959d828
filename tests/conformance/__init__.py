"""The conformance runner: cases of the specification, run against the core or against the whole service.

`python -m tests.conformance [--through http|core] [FILE…]` runs files of the four conventions (default: those in
`cases/`); the base name (`classic.jsonl`, `offsets.jsonl`, `consumer.jsonl`, `assignors.jsonl`) tells which. A scenario
is read by `cases`, interpreted by `scenario`, compared by `matching` with the rules of its convention (`conventions`),
and driven through a `driver`. What is not run, and why, is data: `skips`.
"""

"""Random sequences of requests over Kafka's protocol, to a broker and to the gateway; whole answers are compared.

`python -m tests.differential --kafka download` plays them (`make differential KAFKA=download`). A sequence is a list of
steps that name members by slots, so it means the same to both; `sequences` makes it from a seed, `playing` sends it,
`rules` compares answers and knows the differences that are meant, `running` looks for the fewest steps that differ, and
`sides` starts both.

`--scenarios` plays instead what `scenarios` has: requests of each API about groups and offsets in the cases that their
rules tell apart, in every version; `--record` keeps what the broker answers, for tests without one.

Not played by sequences: `uniform`, which resolves ties by hashes; regular expressions and conversions of groups, whose
results depend on when something is looked at; and groups of the classic protocol whose sessions end.
"""

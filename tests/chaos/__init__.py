"""Chaos: a real stack of several servers, hundreds of members of our client, faults, and a proof after the fact.

`python -m tests.chaos --minutes 3 --seed 7` (also `make chaos MINUTES=3 SEED=7`) runs it. A run has four parts:

`workload` says which members there are; `crew` is a process that runs some of them and writes down what each was told
(`member`, `wire`). `schedule` makes a list of faults from the seed, a pure function; `nemesis` carries them out on a
`world`, the stack. All of it lands in one history (`history`), which `checker` reads when everything is over: a pure
function again, itself tested with forged histories. `run` puts the parts together.
"""

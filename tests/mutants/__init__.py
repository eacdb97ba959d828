"""Mutation runs over the protocol rules: which changes of the cores and of `kcoord/resets` does no test notice?

`python -m tests.mutants [FILE_OR_DIRECTORY...]`, or `make mutants`. `mutations` makes the mutants, `swap` puts one into
the running process, `baseline` finds which tests execute which lines, `pool` gives every mutant a forked process of its
own, `accepted` knows the survivors that were looked at.

There are mature tools, and they do not fit: mutmut leaves tables, constants, dataclass defaults and properties alone
and collects the tests again for each mutant, which takes longer here than running them; cosmic-ray starts the whole
test command each time. Neither keeps a reason for a survivor.
"""

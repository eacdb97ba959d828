"""Group tests that packages of other clients ship, unchanged, against a server: `python -m tests.peers` (`make peers`).

Only packages are fetched: sarama as a Go module, kafka-python as an sdist of PyPI. Their tests know no logins, so
`doors` stands before the server. `suites` says which tests are run, and why the others are not.
"""

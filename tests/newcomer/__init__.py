"""A newcomer who pastes every block of commands of the README and the docs, twice."""

"""The parts of a run, by name, in their order."""

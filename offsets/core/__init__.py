"""The rules of committed offsets. Pure, like `groups.core`: standard library and error registry only."""

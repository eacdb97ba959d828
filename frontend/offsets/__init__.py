"""What pages show of a group's offsets: lag now and over time, the commit history, plans."""

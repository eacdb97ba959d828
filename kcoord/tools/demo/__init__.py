"""`make demo`: a group working on real input, with a worker that is killed half-way.

The topic is the standard library's sources, cut into partitions; an offset is a line number. Worker processes count
words through `kcoord.client`. At the end the counts are compared with those of a single plain process.
"""

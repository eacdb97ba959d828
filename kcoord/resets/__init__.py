"""How people write a reset of offsets: strategies, instants and durations, CSV files.

The service and kgroups share it. Pure, like the cores: standard library and error registry only.
"""

"""What lives as long as a server process: its runtime, the bridge for threads, copies that follow the database."""

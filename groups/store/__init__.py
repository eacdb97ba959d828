"""Groups in Postgres: the locked row, what is read and written, the copies that a process keeps."""

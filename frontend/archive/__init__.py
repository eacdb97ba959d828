"""What pages show of the archive: runs of Spark jobs, and what reconcile found."""

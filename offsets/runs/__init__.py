"""Runs of the Spark jobs as the service sees them: started, watched, restored from, repaired after."""

"""What must hold of every history, one module for each promise. All of it is pure."""

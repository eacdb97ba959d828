"""What every HTTP endpoint of the data plane shares: description, serving, problem responses, request ids."""

"""The audit: what people and tokens changed."""

"""The audit: what people and tokens did, and what was refused."""

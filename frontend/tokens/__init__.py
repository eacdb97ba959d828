"""What pages show of API tokens: presets of rules, and what rules allow in words."""

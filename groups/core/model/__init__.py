"""Groups as values of both protocols: records, the fold, commands, replies. No protocol rule is decided here."""

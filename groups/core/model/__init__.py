"""Groups as values of both protocols: records, the fold, commands, replies. No rule of a protocol is decided here."""

"""Commands on their way to a decision and back: service, mailbox, parked requests, timers; heartbeats from memory."""

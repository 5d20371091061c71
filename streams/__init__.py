"""What is recorded, and where: events, their envelope and chain, the fold of a session, and the log."""

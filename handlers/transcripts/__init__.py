"""Other people's transcripts, read into cases: chat messages, traces, and answers in prose. Pure."""

"""Evidence tools: each call says what matched, what is shown, what was cut, and gives quotable records."""

"""What can be asked: projections of the log in DuckDB."""

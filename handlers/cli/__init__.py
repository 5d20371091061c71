"""The command line: one module per group of commands, each loaded when it is asked for."""

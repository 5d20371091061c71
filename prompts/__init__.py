"""Prompts and templates as files, each known by its SHA-256."""

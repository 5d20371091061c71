"""The bundled incident: made-up logs, metrics and runbooks of one bad release, and five recorded answers to it."""

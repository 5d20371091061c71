"""Agents: what plans, gathers and judges. One protocol; kinds `offline`, `scripted`, `openai`."""

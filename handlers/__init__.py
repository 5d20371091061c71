"""What happens next: the roles, the loop that runs them, agents, evidence tools and commands."""

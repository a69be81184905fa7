"""People, roles, spaces, projects, tokens."""

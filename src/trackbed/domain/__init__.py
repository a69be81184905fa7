"""Values, states, legal moves, events, scope. Pure: no clock, no disk, no randomness."""

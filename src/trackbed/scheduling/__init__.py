"""Who runs next, where, and why the others wait. Decisions are pure."""

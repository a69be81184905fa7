"""HTTP, flows, loops: the only place where rooms meet."""

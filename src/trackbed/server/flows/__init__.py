"""One verb a file; the only place where rooms meet."""

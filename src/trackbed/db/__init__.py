"""One unit of work at a time: Tx with emit, the scope clause, the writer lane, readers, the journal."""

"""Bytes that two rooms agree on: tree listing, spool frame, token shard, checkpoint manifest. Each has a page in docs/formats."""

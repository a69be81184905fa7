"""One per node and attempt: starts ranks, holds the lease, ships the spool."""

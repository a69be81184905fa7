"""Which tokens a step trains on.

`corpus` turns a folder of files into token shards, `order` says which sample comes when (one number is the whole state),
`batches` cuts a rank's share of a step out of the shard.
"""

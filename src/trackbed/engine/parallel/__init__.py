"""Many ranks as one: who I am and the few collectives that we make ourselves (`ranks`), sharding by FSDP2 (`shard`)."""

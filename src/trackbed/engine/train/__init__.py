"""A whole training: the loop (`pretrain`), then evaluation and what a person takes home (`finish`)."""

"""Content-addressed store: blobs and trees by digest, refs by compare-and-set."""

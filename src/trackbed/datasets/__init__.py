"""Named, immutable, gap-free versions of trees."""

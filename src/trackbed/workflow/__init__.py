"""From trackbed.yaml to a resolved spec; templates and stages."""

"""Model versions with provenance."""

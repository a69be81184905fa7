"""One file per command, loaded lazily."""

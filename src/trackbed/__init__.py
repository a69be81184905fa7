"""Trackbed: one submit, one record, on a shared pool of cards."""

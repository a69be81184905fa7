"""The record of a run: attempts, params, metrics, logs, artifacts, facts."""

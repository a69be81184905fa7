"""Ground floor: ids, time, randomness, units, errors, logging. Knows nothing of runs."""

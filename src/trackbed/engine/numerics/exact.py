"""How exact the arithmetic has to be, set once per process."""

import torch


def settle(*, exact: bool, threads: int) -> None:
    """Fix the number of threads, and with `exact` refuse every kernel whose result may differ between two runs.

    Bits depend on the number of threads, because sums are split by it.
    """
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(exact)
    # Otherwise torch fills every new tensor with NaN to show reads of what was never written; we write before we read.
    torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore[reportAttributeAccessIssue]


def seed(value: int) -> None:
    """Seed torch's generator of this process."""
    torch.manual_seed(value)


def generator_state() -> torch.Tensor:
    """Return the state of torch's generator as bytes (a uint8 vector)."""
    return torch.get_rng_state()


def restore_generator(state: torch.Tensor) -> None:
    torch.set_rng_state(state)

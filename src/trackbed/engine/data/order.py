"""Which sample comes when: a keyed permutation of each epoch, and a cursor of one number. No torch.

The g-th sample of a run is sample `permute(g mod n)` of epoch `g div n`. Nothing is shuffled in memory and nothing is
stored but g, so any number of ranks can go on from it. Bits are specified in `docs/explanation/engine.md`.
"""

from dataclasses import dataclass

_MASK = (1 << 64) - 1
_ROUNDS = 6


def mix(value: int) -> int:
    """Return 64 well-mixed bits of a 64-bit number (splitmix64's finisher)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


@dataclass(frozen=True)
class Permutation:
    """A bijection of 0 … size-1, by a Feistel network on the next even number of bits.

    What falls outside the range goes through again (cycle walking), on average less than four times.
    """

    size: int
    key: int

    def __call__(self, index: int) -> int:
        if not 0 <= index < self.size:
            raise IndexError(index)
        half = max(1, ((self.size - 1).bit_length() + 1) // 2)
        low = (1 << half) - 1
        while True:
            left, right = index >> half, index & low
            for turn in range(_ROUNDS):
                left, right = right, left ^ (mix(self.key ^ mix(turn << 32 | right)) & low)
            index = left << half | right
            if index < self.size:
                return index


@dataclass(frozen=True)
class SampleOrder:
    """The endless sequence of samples of a run with this seed over a corpus of this many samples."""

    samples: int
    seed: int

    def at(self, position: int) -> int:
        """Return the sample at a global position; every block of `samples` positions is one epoch, each once."""
        epoch, index = divmod(position, self.samples)
        return Permutation(self.samples, mix(mix(self.seed & _MASK) ^ epoch))(index)


def share(consumed: int, *, batch: int, rank: int, world_size: int) -> range:
    """Return the global positions that a rank takes of the global batch beginning at `consumed`."""
    return range(consumed + rank, consumed + batch, world_size)

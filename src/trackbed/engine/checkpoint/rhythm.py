"""When it is time for a checkpoint. No torch."""

from dataclasses import dataclass

from trackbed.engine.checkpoint.cursor import LoopState


@dataclass(frozen=True)
class Rhythm:
    """Every so many steps, so many seconds, or at the end of each epoch; 0 and False mean: not by this.

    Steps and epochs are arithmetic, alike on all ranks. Seconds are not: there the first rank's clock counts, and its
    wish is agreed on together with the loss.
    """

    steps: int = 0
    seconds: float = 0.0
    epochs: bool = False

    def due(self, before: LoopState, after: LoopState, *, samples: int) -> bool:
        """Whether the update that led from one state to the other calls for a checkpoint, by steps or epochs."""
        if self.steps and after.step % self.steps == 0:
            return True
        return self.epochs and after.consumed // samples > before.consumed // samples

    def wished(self, since_saved_s: float) -> bool:
        return self.seconds > 0 and since_saved_s >= self.seconds

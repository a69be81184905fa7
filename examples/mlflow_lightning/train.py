"""Lightning with its own MLFlowLogger; nothing here knows of Trackbed."""

import lightning as L
import torch
from lightning.pytorch.loggers import MLFlowLogger
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class Line(L.LightningModule):
    def __init__(self, lr: float = 0.05) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch: tuple[Tensor, Tensor], at: int) -> Tensor:
        loss = nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.hparams["lr"])


L.seed_everything(17)
x = torch.linspace(-1, 1, 320).unsqueeze(1)
rows = DataLoader(TensorDataset(x, 3 * x + 1), batch_size=16, shuffle=True)
logger = MLFlowLogger(experiment_name="lines", run_name="line")
trainer = L.Trainer(
    max_epochs=3, logger=logger, log_every_n_steps=5, accelerator="cpu", enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(Line(), rows)

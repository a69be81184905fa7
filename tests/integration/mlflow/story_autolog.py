"""`mlflow.pytorch.autolog` and `mlflow.sklearn.autolog` in one script, as people write it. argv: where to say."""

import json
import sys
from pathlib import Path

import lightning
import mlflow
import numpy as np
import torch
from sklearn.linear_model import LinearRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch, at):
        loss = nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


said = {}
mlflow.pytorch.autolog(log_models=False)
x = torch.linspace(-1, 1, 64).unsqueeze(1)
with mlflow.start_run() as run:
    said["run"] = run.info.run_id
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Line(), DataLoader(TensorDataset(x, 3 * x + 1), batch_size=16))
mlflow.pytorch.autolog(disable=True)

mlflow.sklearn.autolog(registered_model_name="line")
with mlflow.start_run(run_name="sklearn") as run:
    said["second"] = run.info.run_id
    LinearRegression().fit(np.arange(8).reshape(-1, 1), np.arange(8) * 2.0)
loaded = mlflow.pyfunc.load_model("models:/line/1")
said["predicted"] = round(float(loaded.predict(np.array([[4]]))[0]), 3)
Path(sys.argv[1]).write_text(json.dumps(said))

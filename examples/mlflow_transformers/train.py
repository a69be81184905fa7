"""transformers' Trainer with its own MLflow callback; nothing here knows of Trackbed. Runs without a download."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Parity(torch.utils.data.Dataset):
    """Does a row of tokens hold an even number of ones?"""

    def __init__(self, rows: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, 2, (rows, 8), generator=generator)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[at], "labels": self.tokens[at].sum() % 2}


torch.manual_seed(17)
config = BertConfig(vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
arguments = TrainingArguments(
    output_dir="work", max_steps=20, per_device_train_batch_size=8, logging_steps=5, save_strategy="no", eval_strategy="steps", eval_steps=10,
    report_to=["mlflow"], run_name="parity", disable_tqdm=True, use_cpu=True,
)  # fmt: skip
trainer = Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=Parity(256, 1), eval_dataset=Parity(64, 2)
)
trainer.train()

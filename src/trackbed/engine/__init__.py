"""The PyTorch tower: what trains our recipes. It knows none of its neighbours: folders, numbers and answers come in.

Stairs, each may use those to its right:
`train > callbacks > step > config > data | checkpoint > optim | parallel > model > numerics > report`.
Beside them `recipes`: the recipes as data, readable without torch (so are `config`, `model.shape`, `data.order`,
`data.corpus`, `optim.schedule`).

Front door: `config.resolve` makes a checked `RunConfig`; `train.pretrain.pretrain` runs it on one rank. How the pieces
keep "resumed = uninterrupted" true is told in `docs/explanation/engine.md`.
"""

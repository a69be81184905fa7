"""The training process of our recipes: joins engine and client."""

"""The decoder: its shape (`shape`, no torch), its parameters and forward pass (`decoder`), and text out of it (`sample`)."""

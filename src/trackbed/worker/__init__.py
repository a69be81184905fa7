"""The training process of our recipes: `python -m trackbed.worker [RECIPE]`, one a rank. Joins engine and client.

In a job everything comes by the variables of the job (`circumstances`), and the SDK is the host. Without one the same
program trains on its own (`alone`), with the same names, for tests and for people who want to look.
"""

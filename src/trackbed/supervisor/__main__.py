"""`python -m trackbed.supervisor FOLDER [--salvage]`, started by an engine."""

import sys

from trackbed.base import logging
from trackbed.supervisor.main import main

if __name__ == "__main__":
    logging.setup("supervisor")
    sys.exit(main(sys.argv[1:]))

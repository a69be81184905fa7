import os
import sys

from trackbed.worker.main import main

main(sys.argv[1:], dict(os.environ))

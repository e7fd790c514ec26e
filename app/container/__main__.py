"""``python -m app.container ROLE``: process 1 of the container image."""

import sys

from app.container.process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

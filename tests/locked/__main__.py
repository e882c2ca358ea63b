"""The truth card: see `card`."""

import sys

from tests.locked.card import main

sys.exit(main())

#!/usr/bin/env python3
"""Terminals: the cage's own, and the operator's, which stays outside and gets its modes back.

    run.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

The cases are in the files beside this one.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import place  # noqa: E402
import streams  # noqa: E402,F401  # pylint: disable=unused-import
import modes  # noqa: E402,F401  # pylint: disable=unused-import
import jobs  # noqa: E402,F401  # pylint: disable=unused-import
import shown  # noqa: E402,F401  # pylint: disable=unused-import
import programs  # noqa: E402,F401  # pylint: disable=unused-import

place.main()

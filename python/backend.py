"""Builds the package from the root of the project, whose meson.build it is part of."""
import os

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mesonpy import *  # noqa: E402,F401,F403  (the hooks of PEP 517)

"""Deprecated name of `windage.rng`."""

import sys
import warnings

from windage import rng

warnings.warn("windage.streams is now windage.rng", DeprecationWarning, stacklevel=2)
sys.modules[__name__] = rng

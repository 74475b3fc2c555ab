"""Deprecated name of `windage.live`."""

import sys
import warnings

from windage import live

warnings.warn("windage.online is now windage.live", DeprecationWarning, stacklevel=2)
sys.modules[__name__] = live

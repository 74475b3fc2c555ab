"""Deprecated name of `windage.adversarial`."""

import sys
import warnings

from windage import adversarial

warnings.warn("windage.masters is now windage.adversarial", DeprecationWarning, stacklevel=2)
sys.modules[__name__] = adversarial

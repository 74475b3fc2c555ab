"""Reward noise: how R_t spreads around its mean r_t(s, a)."""

from __future__ import annotations

from dataclasses import dataclass

from windage.errors import InputError
from windage.validation import as_choice, as_real, shown

__all__ = ["Noise"]

_KINDS = ("none", "bernoulli", "gaussian", "beta")


@dataclass(frozen=True)
class Noise:
    """The law of a reward given its mean; make one with the class methods.

    The paper asks for 1-sub-Gaussian noise: Bernoulli and Beta rewards in [0, 1] are, and Gaussian
    ones with sigma <= 1.

    Examples
    --------
    >>> Noise.gaussian(0.1)
    Noise.gaussian(sigma=0.1)
    >>> Noise.bernoulli().bounded
    True
    """

    kind: str
    spread: float = 0.0

    def __post_init__(self) -> None:
        as_choice(self.kind, "noise", _KINDS)
        spread = as_real(self.spread, "spread", low=0, open_low=self.kind == "beta")
        if spread and self.kind in ("none", "bernoulli"):
            raise InputError(
                f"{spread} has no meaning for {self.kind!r}", field="spread", fix="leave it out"
            )
        object.__setattr__(self, "spread", spread)

    @classmethod
    def bernoulli(cls) -> Noise:
        """Rewards are 1 with probability r_t(s, a), else 0."""
        return cls("bernoulli")

    @classmethod
    def gaussian(cls, sigma: float = 0.1) -> Noise:
        """Rewards are normal around their mean; they may leave [0, 1]."""
        return cls("gaussian", as_real(sigma, "sigma", low=0))

    @classmethod
    def beta(cls, concentration: float = 10.0) -> Noise:
        """Rewards are Beta(c m, c (1 - m)) with mean m; large c is little noise."""
        return cls("beta", as_real(concentration, "concentration", low=0, open_low=True))

    @classmethod
    def none(cls) -> Noise:
        """Rewards equal their mean."""
        return cls("none")

    @classmethod
    def of(cls, noise: Noise | str) -> Noise:
        """Return a Noise, given one or its bare name."""
        if isinstance(noise, Noise):
            return noise
        if not isinstance(noise, str):
            raise InputError(
                f"{shown(noise)} is not a noise",
                field="noise",
                fix="pass a wd.Noise or its bare name",
            )
        kind = as_choice(noise, "noise", _KINDS)
        return {"gaussian": cls.gaussian, "beta": cls.beta}.get(kind, lambda: cls(kind))()

    @property
    def bounded(self) -> bool:
        """Whether rewards stay in [0, 1]."""
        return self.kind != "gaussian"

    @property
    def code(self) -> int:
        """The number the compiled loops know this kind by (`kernels.simulator`)."""
        return _KINDS.index(self.kind)

    def __repr__(self) -> str:
        inside = {"gaussian": f"sigma={self.spread}", "beta": f"concentration={self.spread}"}
        return f"Noise.{self.kind}({inside.get(self.kind, '')})"

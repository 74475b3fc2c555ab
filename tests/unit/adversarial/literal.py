"""The masters again, slowly and from their definitions, in numbers of 50 digits."""

from __future__ import annotations

from mpmath import e, exp, log, mp, mpf, sqrt


class Literal:
    """Weights or scores in the open; a subclass has the two formulas of an algorithm."""

    def __init__(self, K, n):
        mp.dps = 50
        self.K, self.n, self.t, self.known = K, n, 1, None
        self.setup()

    def probabilities(self):
        if self.known is None:
            self.known = self.found()
        return self.known

    def update(self, arm, x):
        self.learn(arm, mpf(x), self.probabilities())
        self.t += 1
        self.known = None

    def mixed(self, w, gamma):
        total = sum(w)
        return [(1 - gamma) * x / total + gamma / self.K for x in w]


class LiteralExp3P(Literal):
    def setup(self):
        K, n = self.K, self.n
        self.alpha = mpf("0.95") * sqrt(log(K) / (K * n))
        self.beta = sqrt(log(K) / (K * n))
        self.gamma = min(mpf(1), mpf("1.05") * sqrt(K * log(K) / n))
        self.q = [mpf(0)] * K

    def found(self):
        return self.mixed([exp(self.alpha * q) for q in self.q], self.gamma)

    def learn(self, arm, x, p):
        for k in range(self.K):
            self.q[k] += (self.beta + (x if k == arm else 0)) / p[k]


class LiteralExp3(Literal):
    def setup(self):
        self.gamma = min(mpf(1), sqrt(self.K * log(self.K) / ((e - 1) * self.n)))
        self.w = [mpf(1)] * self.K

    def found(self):
        return self.mixed(self.w, self.gamma)

    def learn(self, arm, x, p):
        self.w[arm] *= exp(self.gamma * x / p[arm] / self.K)


class LiteralExp3S(Literal):
    pieces = 2  # one change

    def setup(self):
        K, n = self.K, self.n
        inside = K * (self.pieces * log(K * n) + e) / ((e - 1) * n)
        self.gamma = min(mpf(1), sqrt(inside))
        self.w = [mpf(1)] * K

    def found(self):
        return self.mixed(self.w, self.gamma)

    def learn(self, arm, x, p):
        shared = e / self.n / self.K * sum(self.w)
        grown = exp(self.gamma * x / p[arm] / self.K)
        self.w = [w * (grown if k == arm else 1) + shared for k, w in enumerate(self.w)]


class LiteralExp3IX(Literal):
    def setup(self):
        self.eta = sqrt(2 * log(self.K) / (self.K * self.n))
        self.losses = [mpf(0)] * self.K

    def found(self):
        return self.mixed([exp(-self.eta * loss) for loss in self.losses], mpf(0))

    def learn(self, arm, x, p):
        self.losses[arm] += (1 - x) / (p[arm] + self.eta / 2)


class LiteralTsallis(Literal):
    def setup(self):
        self.losses = [mpf(0)] * self.K

    def found(self):
        """Solve the normalisation by halving an interval, not by Newton's method."""
        eta, least = 2 / sqrt(mpf(self.t)), min(self.losses)

        def at(x):
            return [4 / (eta * (loss - x)) ** 2 for loss in self.losses]

        low, high = least - 2 * sqrt(mpf(self.K)) / eta, least - 2 / eta
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(at(middle)) < 1 else (low, middle)
        return at(low)

    def learn(self, arm, x, p):
        self.losses[arm] += (1 - x) / p[arm]


LITERAL = {
    "exp3p": LiteralExp3P,
    "exp3": LiteralExp3,
    "exp3-s": LiteralExp3S,
    "exp3-ix": LiteralExp3IX,
    "tsallis-inf": LiteralTsallis,
}

"""Public names: each agent is a line, with its id as the comment."""

from windage.agents.bandits import BOB as BOB  # bob
from windage.agents.bandits import DUCB as DUCB  # d-ucb
from windage.agents.bandits import EXP3S as EXP3S  # exp3-s
from windage.agents.bandits import REXP3 as REXP3  # rexp3
from windage.agents.bandits import SWUCB as SWUCB  # sw-ucb
from windage.agents.bandits import UCB1 as UCB1  # ucb1
from windage.agents.base import Agent as Agent
from windage.agents.baselines import FiniteHorizonAgent as FiniteHorizonAgent  # finite-horizon
from windage.agents.baselines import MyopicAgent as MyopicAgent  # myopic
from windage.agents.baselines import OracleAgent as OracleAgent  # oracle
from windage.agents.baselines import RandomAgent as RandomAgent  # random
from windage.agents.binned import Binned as Binned
from windage.agents.certainty_equivalent import (
    CertaintyEquivalent as CertaintyEquivalent,  # certainty-equivalent
)
from windage.agents.differential_q import DifferentialQ as DifferentialQ  # diff-q
from windage.agents.imed_rl import IMEDRL as IMEDRL  # imed-rl
from windage.agents.imed_rl import SWIMEDRL as SWIMEDRL  # sw-imed-rl
from windage.agents.meta.borl import BORL as BORL  # borl
from windage.agents.meta.doubling import Doubling as Doubling
from windage.agents.meta.master import MASTER as MASTER  # master
from windage.agents.multiscale.guarded import (
    MultiScaleGuarded as MultiScaleGuarded,  # multi-scale-guarded
)
from windage.agents.multiscale.multiscale import MultiScale as MultiScale  # multi-scale
from windage.agents.optimistic.kl_ucrl import KLUCRL as KLUCRL  # kl-ucrl
from windage.agents.optimistic.kl_ucrl import SWKLUCRL as SWKLUCRL  # sw-kl-ucrl
from windage.agents.optimistic.swucrl2cw import SWUCRL2 as SWUCRL2  # swucrl2
from windage.agents.optimistic.swucrl2cw import SWUCRL2CW as SWUCRL2CW  # swucrl2-cw
from windage.agents.optimistic.swucrl2cw import (
    PracticalSWUCRL2CW as PracticalSWUCRL2CW,  # swucrl2-cw-practical
)
from windage.agents.optimistic.ucrl2 import SWUCRL as SWUCRL  # sw-ucrl
from windage.agents.optimistic.ucrl2 import UCRL2 as UCRL2  # ucrl2
from windage.agents.optimistic.ucrl2 import UCRL2B as UCRL2B  # ucrl2b
from windage.agents.optimistic.ucrl2 import RestartedUCRL2 as RestartedUCRL2  # ucrl2-restarts
from windage.agents.optimistic.ucrl2 import VariationAwareUCRL as VariationAwareUCRL  # va-ucrl
from windage.agents.optimistic.ucrl3 import SWUCRL3 as SWUCRL3  # sw-ucrl3
from windage.agents.optimistic.ucrl3 import UCRL3 as UCRL3  # ucrl3
from windage.agents.psrl import PSRL as PSRL  # psrl
from windage.agents.psrl import SWPSRL as SWPSRL  # sw-psrl
from windage.agents.psrl import RestartedPSRL as RestartedPSRL  # restarted-psrl
from windage.agents.registry import facts as facts
from windage.agents.registry import get as get
from windage.agents.registry import make as make
from windage.agents.registry import names as names
from windage.agents.registry import parameters as parameters
from windage.agents.registry import requires as requires
from windage.agents.registry import resolve as resolve
from windage.agents.registry import restore as restore
from windage.agents.registry import told as told

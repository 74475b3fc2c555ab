"""Public names: each environment is a line, and loading it registers it."""

from windage.envs.assortment import assortment as assortment
from windage.envs.bandit import bandit as bandit
from windage.envs.bidding import bidding as bidding
from windage.envs.epidemic import epidemic as epidemic
from windage.envs.inventory import inventory as inventory
from windage.envs.proposition3 import Replay as Replay
from windage.envs.proposition3 import peril as peril
from windage.envs.proposition3 import peril_replay as peril_replay
from windage.envs.queueing import queue as queue
from windage.envs.random_drift import random_drift as random_drift
from windage.envs.registry import Environment as Environment
from windage.envs.registry import Facts as Facts
from windage.envs.registry import Instance as Instance
from windage.envs.registry import facts as facts
from windage.envs.registry import get as get
from windage.envs.registry import make as make
from windage.envs.registry import names as names
from windage.envs.registry import register as register
from windage.envs.replacement import replacement as replacement
from windage.envs.ride_hailing import ride as ride
from windage.envs.riverswim import riverswim as riverswim
from windage.envs.riverswim import riverswim_mdp as riverswim_mdp
from windage.envs.treatment import treatment as treatment
from windage.envs.two_state_cosine import two_state_cosine as two_state_cosine
from windage.envs.wireless import wireless as wireless

"""The tolerances of engine "single", each with its reason.

Decision values are of the size of lam, coefficients of the size of their box w; tolerances are relative to that.  The path is
promised to a relative gap of 1e-9, so what is left at any one place has to be well below.
"""

from zerogap.kernels import UNIT
from zerogap.stopping import PlainGap

# The start.
CAPPED = (
    1.0  # decision value that a point at its cap has by itself, its margin: up to this most points are at their caps
)
START = PlainGap(1e-12)  # of the solution by SMO; exchanges then end at the optimum, and fewer are left to make
OPTIMAL = 1e-11  # a violation at the start that is no reason for one more exchange: a hundredth of the promise

AT_CAP = (
    8.0 * UNIT
)  # by which a coefficient at its cap may be off, scaled from C to lam: that is a division and a product

# How good the lines are.  An update adds a few roundings to them; a solution afresh reads all kernel rows of the elbow.
FRESH_EVERY = 25  # events after which those of two classes are solved for afresh: that is then a small part of all work
# Events after which any lines are: of other families that takes longer, as how good they have to be follows from the objective.
# Whether they still are is tested at every event.  Without a bias ``FRESH_EVERY`` holds for all.
STALE = 75
LEFT_OVER = 1e-11  # what they may leave of p_E = 0 and q_E = y_E, relative to lam
# Part of the objective that this may cost, the promise: where it would be more they may leave less.  They leave a hundredth of
# what they may as a rule.  Where even their rounding may cost more they are exact at every event: that takes ten times as long.
OPEN = 1e-9
SEEN_LEFT_OVER = 0.1  # part of that for what stays on the margins
ROUGH = 10.0  # lines that were so many times steeper in between have left their rounding, and are solved for afresh
UNSURE = 1e-10  # a coefficient that refinement changes by more than this part of its box is refined more precisely
VISIBLE = 0.1  # part of what they may leave: more of it, and all points are evaluated again once it is made up for
ROUNDS = 2  # of refinement in twice the precision: what a solve leaves, times the same again, is below all rounding
LONG = 0.5  # where lam falls below this share of itself on one segment, what is left over grows relative to lam
SHORTENED = 0.75  # share of lam to which a segment is cut that must not be long: above ``LONG``, and still some way on
UNIT_ERROR = 1e-16  # rounding of a decision value, for each unit of coefficients and kernel values: about half an ulp
# Rounding of the bound contribution, relative to its largest value.  This is an estimate, a hundred roundings: about what ten
# thousand terms leave if their errors are independent.  It only says when to solve and evaluate afresh; no proof rests on it.
SUM_ERROR = 1e-14
# A point nearer to its margin than this, relative to lam, may be on it but for rounding, and is not screened out.
ON_MARGIN = 1e-8  # a thousand times what the lines may leave

# When the bound contribution is summed afresh: an update rounds like one term of the sum, and counts relative to lam.
REFRESH_EVERY = 500  # events
REFRESH_BELOW = 0.5  # of the lam at which that was done last

# Which event is next.
SLOW = 1e-13  # part of the fastest rate that may be rounding: such a point does not move, or by this part of a box
TIE = 1e-10  # events nearer than this, relative to lam or to the box, happen at once: their order is not known
# Two lam nearer than this, relative, are the same: that of an event is a quotient, known but for some last digits.
SAME_LAM = 2e-14
OUTSIDE = 1e-14  # a coefficient beyond its bound by more than this part of its box is not there by rounding alone
# Where lines are so steep that the last digit of lam moves a coefficient by more, that much, if it costs no more of the
# objective than this part of the promise.
OUTSIDE_STEEP = 1e-11
SEEN_OUTSIDE = 0.01
# Part of the fastest rate of an exchange that may be rounding.  More than ``SLOW``: the exchange multiplies the determinant of
# the elbow's system by the squared rate of the point that leaves, so that to take rounding for a rate makes it singular, while
# in the ratio test that is one event too many.
NOISE = 1e-12

# Ties.
TIED = 1e-9  # what is nearer to the boundary of its set than this is tied: ten times what ``TIE`` leaves between events
MANY_TIED = 8  # points that enter together, if they can: the lines are then solved for afresh
ROUNDS_OF_TIES = 3  # in which those that would leave their boxes are left out
TRANSITIONS_PER_TIE = 50  # transitions at one and the same C before the tie is resolved as a whole
MAX_DEGENERATE = 10 * TRANSITIONS_PER_TIE  # and before that is given up
BACKUP_STEP = 1e-6  # part of lam by which the backup goes on: past all that is tied, and no farther
NEARER = (1.0, 1e-2, 1e-4)  # of it: where coefficients are steep, from nearer by the way back is free of events
BACKUP_NEAR = 10.0  # of its steps: a backup as soon as this was led to by the last, and goes twice as far
LARGEST_BACKUP = 0.1  # part of lam: seventeen in a row get there, and each goes on by a tenth of what is left at most
COINCIDENT = 1e-10  # of the largest kernel value: a squared distance between tied points that is all rounding
LEVEL = 1e-9  # a margin that changes by less than this, relative to lam, does not change: as near as ``TIED``

# The last segment, on which no point is capped: a margin short by 1e-14 costs C times that.
NEAR = 1e-6  # margins are measured for points this near to them
SHORT = 1e-9  # they are made up for if they are short by no more than this
LENGTHS = 50  # trials: rounding changes the margins anew every time; halving, fourteen get from ``SHORT`` to ``CLEAR``
CLEAR = 1e-13  # by which they are then met, more than rounding makes of it
MAX_COORDINATES = 20_000  # read to compute kernel values in twice the precision: half a millisecond

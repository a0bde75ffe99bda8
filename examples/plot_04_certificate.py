"""
The certificate, and what rounding does to it
=============================================

A certificate brackets the optimum: it is below the primal objective and above the dual one. Both are computed in
float64, which rounds. So a certificate also says by how much rounding can have put it off, and counts that as a part
of the gap.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from zerogap import DualProblem, Gram, RelativeGap, solve

X, y = make_moons(200, noise=0.2, random_state=0)
problem = DualProblem.hinge(Gram(X, gamma=1.0), 2.0 * y - 1.0, C=10.0)
solution = solve(problem, "smo", stop=RelativeGap(1e-9), trace_every=5)
print(repr(solution.certificate))

# %%
# While SMO runs, the dual objective rises to the optimum from below, and the primal objective comes down from above.
# The difference is the gap.

trace = solution.trace
step, dual, gap = (np.array(trace[name])[1:] for name in ("step", "dual", "gap"))
primal = dual / (1.0 - gap)

fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4))
left.plot(step, primal, label="primal objective")
left.plot(step, dual, label="dual objective")
left.fill_between(step, dual, primal, alpha=0.15)
left.axhline(solution.certificate.dual, color="grey", lw=0.8, ls=":")
left.set(xlabel="pairs moved", ylim=(0.0, 2.5 * dual[-1]), title="the optimum is in between")
left.legend()
right.semilogy(step, gap)
right.set(xlabel="pairs moved", ylabel="relative gap", title="to nine digits")
plt.show()

# %%
# Rounding matters where numbers cancel. Move the points far from the origin: a linear kernel then sums large numbers
# of both signs. The bound on rounding grows with the square of the distance, and a gap of 1e-9 that float64 cannot
# show is not claimed.

beta = solve(DualProblem.hinge(Gram(X, "linear"), 2.0 * y - 1.0, C=1.0), stop=RelativeGap(1e-10)).beta
for distance in (0.0, 1e2, 1e4, 1e6):
    moved = DualProblem.hinge(Gram(X + distance, "linear"), 2.0 * y - 1.0, C=1.0)
    plain, precise = moved.certify(beta), moved.certify(beta, precisely=True)
    print(
        f"moved by {distance:9g}: rounding {plain.rounding:.1e}, relative gap {plain.relative_gap:.1e}; "
        f"in twice the precision {precise.relative_gap:.1e}"
    )

"""
What C does
===========

C is the price of a point on the wrong side of its margin. A small C buys a wide margin that many points violate; a
large one a narrow margin that follows single points. :class:`zerogap.SVCPath` has the solution for every C, so that
pictures of any of them cost nothing more.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from zerogap import SVCPath
from zerogap.plots import decision_boundary

X, y = make_moons(120, noise=0.28, random_state=3)
path = SVCPath(gamma=1.0, C_min=0.01, C_max=1000.0).fit(X, y)
print(path.path_)

# %%
# One fit, six machines. The thick line is the boundary, the dashed ones are the margins. The colour of a point tells
# its set: on the margin it holds the boundary, inside the margin it pays C, outside it could be left out.

fig, axes = plt.subplots(2, 3, figsize=(8.8, 6.0), sharex=True, sharey=True, layout="constrained")
for ax, C in zip(axes.flat, [0.02, 0.2, 1.0, 10.0, 100.0, 1000.0], strict=True):
    decision_boundary(path, X, y, at=C, ax=ax)
    handles, names = ax.get_legend_handles_labels()
    ax.get_legend().remove()  # one for all
    ax.set_title(f"C = {C:g}: {path.at(C).support_.size} support vectors", loc="left")
    ax.label_outer()
fig.legend(handles, [name.partition(" (")[0] for name in names], loc="outside lower center", ncols=4)
plt.show()

# %%
# And every C between: drag the slider, or press play. ``path.explore("page.html")`` writes such a page of your own data.
#
# .. explorer:: moons

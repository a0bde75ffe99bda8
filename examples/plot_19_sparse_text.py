"""
Sparse data: texts as counts of words
=====================================

Texts become long vectors that are nearly all zeros. Sparse matrices go in as they are, dense copies are not made, and
a linear kernel needs no kernel matrix: ``auto`` solves for the vector of weights, and certifies it all the same.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC

from zerogap import SVC, certify

# %%
# 600 texts of 3,000 words: each of two topics prefers 40 words of its own, the rest is common to both.

random = np.random.default_rng(0)
n, n_words = 600, 3000
y = random.integers(0, 2, n)
common = 1.0 / np.arange(1, n_words + 1)
rows = []
for topic in y:
    rate = common.copy()
    rate[100 + 40 * topic : 140 + 40 * topic] *= 2.5
    rows.append(random.multinomial(60, rate / rate.sum()))
X = sparse.csr_array(np.array(rows, dtype=float))
X = X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]).tocsr()
print(f"{X.shape[0]} texts, {X.shape[1]} words, {100 * X.nnz / np.prod(X.shape):.1f} % of the entries are not zero")

# %%
# Both machines on the same texts. LinearSVC counts the bias in its norm and squares the hinge, so its problem is
# another one; ``certify`` measures each in its own.

model = SVC(C=10.0, kernel="linear", tol=1e-8).fit(X[:400], y[:400])
print("zerogap:  ", certify(model, X[:400], y[:400]), "accuracy", model.score(X[400:], y[400:]))
other = LinearSVC(C=10.0).fit(X[:400], y[:400])
print("LinearSVC:", certify(other, X[:400], y[:400]), "accuracy", other.score(X[400:], y[400:]))

# %%
# The words that decide are those of the topics: 100 to 139 for the one, 140 to 179 for the other.

w = model.coef_.toarray().ravel() if sparse.issparse(model.coef_) else model.coef_.ravel()
fig, ax = plt.subplots(figsize=(7.0, 3.0))
ax.vlines(np.arange(300), 0, w[:300], lw=1.2, color=np.where(w[:300] > 0, "#C77800", "#0072B2"))
ax.axvspan(99.5, 139.5, alpha=0.1, lw=0)
ax.axvspan(139.5, 179.5, alpha=0.1, color="#D55E00", lw=0)
ax.set(xlabel="word, most frequent first", ylabel="weight")
plt.show()

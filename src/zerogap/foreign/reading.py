"""Which problems a fitted model solves, as its class, its parameters and its fitted attributes tell."""

import functools
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.estimators.base import KernelMachine, are_numbers, looked_up
from zerogap.estimators.pairs import coefficients, pairs_of, signs
from zerogap.estimators.svc import SVC
from zerogap.estimators.svr import SVR
from zerogap.foreign.nu import NuClassifier, NuRegressor
from zerogap.foreign.parts import LOOKED_AT, Expansion, Part, Vector
from zerogap.gram import Gram
from zerogap.kernels import Function, Kernel, as_kernel, is_precomputed
from zerogap.problem import DualProblem

CLASSIFIERS, REGRESSORS = ("SVC", "NuSVC", "LinearSVC"), ("SVR", "NuSVR", "LinearSVR")
KNOWN = (*CLASSIFIERS, *REGRESSORS, "OneClassSVM")


def kind_of(model: Any) -> str:
    """Return the name of the machine that a model is, by its classes: scikit-learn's, or another's of the same name."""
    for cls in type(model).__mro__:
        if cls.__name__ in KNOWN:
            return cls.__name__
    raise TypeError(
        f"A fitted {', '.join(KNOWN[:-1])} or {KNOWN[-1]} is expected, of zerogap, scikit-learn or scikit-learn-intelex, or a "
        f"Pipeline or search that ends in one; got {type(model).__name__}. {_advice(model)}".rstrip()
    )


def _advice(model: Any) -> str:
    if hasattr(model, "calibrated_classifiers_"):
        return "Its calibrated_classifiers_ have machines of their own, each fitted on a part of the rows: pass these."
    if hasattr(model, "estimators_"):
        return "Pass its estimators_ one by one, each with its own labels."
    return ""


class Training:
    """The training data of a model, checked, and the weight of every row in its loss."""

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any):
        check_is_fitted(model)
        self.model, self.kind, self.is_own = model, kind_of(model), isinstance(model, KernelMachine)
        self.kernel = None if self.kind.startswith("Linear") else _kernel_of(model, X)
        self.has_objects = isinstance(self.kernel, Function) and not are_numbers(X)
        if self.has_objects:  # they stand for themselves by their numbers
            self.X = np.arange(len(X), dtype=np.float64)[:, None]
        elif self.kernel is not None and self.kernel.is_precomputed:
            validation.refuse_sparse_kernel(X)
            self.X = X if getattr(X, "dtype", None) == np.float32 else validation.check_points(X)
        else:
            self.X = validation.check_points(X)
        self.n = self.X.shape[0]
        self._check_shape()
        if self.kernel is not None and self.has_objects:
            self.kernel = looked_up(self.kernel, X)
        self.weight = validation.check_weights(sample_weight, self.n)
        self.y = np.zeros(self.n) if self.kind == "OneClassSVM" else np.asarray(y)
        if y is None and self.kind != "OneClassSVM":
            raise ValueError(f"y is missing: pass the {self.n} labels or targets that the {self.kind} was fitted with.")
        if self.y.shape != (self.n,):
            raise ValueError(f"y must hold one entry for each of the {self.n} rows of X; got shape {self.y.shape}.")
        if self.kind in CLASSIFIERS:
            self.classes, self.codes = model.classes_, validation.check_known_labels(self.y, model.classes_)
        elif self.kind in REGRESSORS:
            self.y = validation.check_target(self.y, self.n)

    def _check_shape(self) -> None:
        expected, shape = getattr(self.model, "shape_fit_", None), self.X.shape
        if self.has_objects:  # of which only the number counts
            expected, shape = None if expected is None else expected[:1], shape[:1]
        if expected is not None and tuple(expected) != shape:
            raise ValueError(
                f"The model was fitted on X of shape {tuple(expected)}; got {shape}. Pass its training data."
            )
        if self.has_objects:
            return
        features = getattr(self.model, "n_features_in_", self.X.shape[1])
        if features != self.X.shape[1]:
            raise ValueError(f"The model was fitted on {features} features; X has {self.X.shape[1]}.")

    @functools.cached_property
    def class_factors(self) -> np.ndarray:
        """What the cost of each class is multiplied by."""
        model = self.model
        if self.is_own:
            return model._class_factors(self.codes, self.weight)
        if (fitted := getattr(model, "class_weight_", None)) is not None:  # as it was computed there
            return np.asarray(fitted, dtype=np.float64)
        # Where it takes the weights of rows, LinearSVC passes them.
        takes_weights = "sample_weight" in inspect.signature(compute_class_weight).parameters
        options = {"sample_weight": self.weight} if takes_weights else {}
        return compute_class_weight(model.class_weight, classes=self.classes, y=self.y, **options)

    @functools.cached_property
    def cost(self) -> np.ndarray:
        """(n,) weight of each row, with that of its class."""
        return self.weight * self.class_factors[self.codes] if self.weighs_classes else self.weight

    @property
    def weighs_classes(self) -> bool:
        """Whether weights of classes count: in LIBSVM's nu-SVC, unlike that of scikit-learn-intelex, they do not."""
        return self.kind in CLASSIFIERS and (self.kind != "NuSVC" or hasattr(self.model, "_onedal_estimator"))

    def gram(self, rows: np.ndarray, megabytes: float) -> Gram:
        """Return the kernel matrix of some rows."""
        assert self.kernel is not None
        if self.kernel.is_precomputed:
            return Gram(self.X if rows.size == self.n else self.X[np.ix_(rows, rows)], self.kernel)
        return Gram.of_checked(self.X if rows.size == self.n else self.X[rows], self.kernel, megabytes)

    @functools.cached_property
    def dual(self) -> np.ndarray:
        """Coefficients of the support vectors, a row for each of the other classes."""
        found = self.model.dual_coef_
        return np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)

    @functools.cached_property
    def support(self) -> np.ndarray:
        """Rows of the support vectors."""
        found, vectors = np.asarray(self.model.support_), getattr(self.model, "support_vectors_", None)
        kept = np.flatnonzero(self.weight > 0)
        # LIBSVM drops rows of weight zero, and counts those that are left.
        for rows in (found, kept[found] if found.size and found.max() < kept.size else found):
            if not (self.weight[rows] == 0).any() and (vectors is None or _agree(self.X, rows, vectors)):
                return rows
        raise ValueError(
            "The support vectors of the model are not the rows of X that it names (support_). Pass the very data it was fitted "
            "on, rows in that order, and its sample_weight if there was one."
        )


def _agree(X: Any, rows: np.ndarray, vectors: Any) -> bool:
    """Whether these rows are the vectors, to the digits of float32 if that is what the model keeps."""
    if vectors.shape != (rows.size, X.shape[1]) or not rows.size:
        return True  # a kernel matrix, or a function: nothing is kept
    own = X[rows].toarray() if sp.issparse(X) else X[rows]
    theirs = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors)
    return bool((own.astype(theirs.dtype) == theirs).all())


def _kernel_of(model: Any, X: Any) -> Kernel:
    """Return the kernel with the gamma that the model used."""
    if isinstance(model, KernelMachine):
        return model._kernel
    gamma, used = model.gamma, getattr(model, "_gamma", None)
    if isinstance(gamma, str) and used:
        gamma = float(used)
    kernel = as_kernel(model.kernel, gamma, model.degree, model.coef0)
    if is_precomputed(model.kernel) or isinstance(kernel, Function):
        return kernel
    return kernel.resolved(validation.check_points(X))


def parts_of(training: Training) -> Iterator[Part]:
    """Yield the problems that the model solves; each has a copy of its points, so that one at a time is enough."""
    if training.kind == "LinearSVC":
        yield from _linear_classifier(training)
    elif training.kind == "LinearSVR":
        yield _linear_regressor(training)
    elif training.kind in CLASSIFIERS:
        yield from (_pair(training, k, *pair) for k, pair in enumerate(pairs_of(training.classes.size)))
    else:
        yield _of_all(training)


def _of_all(training: Training) -> Part:
    """Return the one problem of a regression, or of one class."""
    kind, rows = training.kind, np.arange(training.n)
    own = np.zeros(training.n)
    np.add.at(own, training.support, training.dual[0])
    bias, gram = _biases(training)[0], functools.partial(training.gram, rows)
    if kind == "NuSVR":
        problem = _regression(training, gram(LOOKED_AT), 0.0)
        return NuRegressor.of(Expansion("", problem, rows, gram, own, bias), training.model.nu)
    if kind == "OneClassSVM":
        problem = DualProblem.one_class(gram(LOOKED_AT), training.model.nu, sample_weight=training.weight)
    else:
        problem = _regression(training, gram(LOOKED_AT), training.model.epsilon)
    return Expansion("", problem, rows, gram, own, bias)


def _regression(training: Training, gram: Gram, epsilon: float) -> DualProblem:
    model, C, weight = training.model, training.model.C, training.weight
    is_ours = isinstance(model, SVR)
    if is_ours and np.isinf(C):  # solved with a cost that no coefficient reaches, the same for every row
        C, weight = model._cost, np.sign(weight)
    build = getattr(DualProblem, model._solved_loss) if is_ours else DualProblem.epsilon_insensitive
    fit_intercept = getattr(model, "fit_intercept", True)
    return build(gram, training.y, C, epsilon, sample_weight=weight, fit_intercept=fit_intercept)


def _pair(training: Training, k: int, a: int, b: int) -> Part:
    """Return the problem of class a against class b, number k of all pairs."""
    model, codes, classes = training.model, training.codes, training.classes
    rows = np.flatnonzero((codes == a) | (codes == b))
    is_one = classes.size == 2
    sign, owner = signs(codes[rows], a, b, classes.size), codes[training.support]
    every = np.zeros(training.n)
    np.add.at(every, training.support, coefficients(training.dual, owner, a, b))
    own, bias = every[rows], _biases(training)[k]
    gram, cost = functools.partial(training.gram, rows), training.cost[rows]
    name = "" if is_one else f"{classes[a]} against {classes[b]}"
    if training.kind == "NuSVC":
        problem = DualProblem.hinge(gram(LOOKED_AT), sign, 1.0, sample_weight=cost)
        return NuClassifier.of(Expansion(name, problem, rows, gram, own, bias), model.nu)
    build = DualProblem.squared_hinge if isinstance(model, SVC) and model.loss != "hinge" else DualProblem.hinge
    fit_intercept = getattr(model, "fit_intercept", True)
    problem = build(gram(LOOKED_AT), sign, model.C, sample_weight=cost, fit_intercept=fit_intercept)
    return Expansion(name, problem, rows, gram, own, bias)


def _biases(training: Training) -> np.ndarray:
    """Return the intercepts; our own go with the kernel as it is, about its centre."""
    model = training.model
    return np.atleast_1d(model._biases if training.is_own else np.asarray(model.intercept_, dtype=np.float64))


# Models that are a vector w.


def _augmented(training: Training) -> tuple[Any, float]:
    """Return the points with a constant feature, if there is an intercept, and its value."""
    model, X = training.model, training.X
    if not model.fit_intercept or _is_free(model):
        return X, 0.0
    scale = float(model.intercept_scaling)
    column = np.full((training.n, 1), scale)
    return (sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])), scale


def dense_weights(coef: Any) -> np.ndarray:
    """Return weights as an array, sparsified or not."""
    return coef.toarray() if sp.issparse(coef) else np.asarray(coef)


def _is_free(model: Any) -> bool:
    """Whether the intercept does not count in the objective: ours may not."""
    return bool(model.fit_intercept) and bool(getattr(model, "free_intercept", False))


def _vector(coef: np.ndarray, intercept: float, scale: float) -> np.ndarray:
    return np.append(coef, intercept / scale) if scale else np.asarray(coef, dtype=np.float64)


def _linear_classifier(training: Training) -> Iterator[Part]:
    model, classes, codes = training.model, training.classes, training.codes
    if model.penalty != "l2":
        raise ValueError(
            f"LinearSVC(penalty={model.penalty!r}) is no support vector machine: its penalty is not the norm that the margin "
            'comes from. penalty="l2" is.'
        )
    if model.multi_class != "ovr":
        raise ValueError(
            f"LinearSVC(multi_class={model.multi_class!r}) is one problem over all classes, of another form. With "
            'multi_class="ovr", a class against the rest, it is a support vector machine for each.'
        )
    X, scale = _augmented(training)
    gram = functools.partial(Gram.of_checked, X, as_kernel("linear"), keep_sparse=True)
    coef = np.atleast_2d(dense_weights(model.coef_))
    intercept = np.broadcast_to(model.intercept_, coef.shape[:1])
    squared = model.loss == "squared_hinge"
    build, C = (DualProblem.squared_hinge, 2.0 * model.C) if squared else (DualProblem.hinge, model.C)
    for k in range(coef.shape[0]):
        positive = codes == (1 if classes.size == 2 else k)
        # LIBLINEAR weighs the class that is looked for, and all of the rest as they are.
        factors = training.class_factors[codes]
        cost = training.weight * (factors if classes.size == 2 else np.where(positive, factors, 1.0))
        problem = build(
            gram(LOOKED_AT), np.where(positive, 1.0, -1.0), C, sample_weight=cost, fit_intercept=_is_free(model)
        )
        name = "" if classes.size == 2 else f"{classes[k]} against the rest"
        w = _vector(coef[k], float(intercept[k]), scale)
        yield Vector(name, problem, np.arange(training.n), gram, X, w, float(intercept[k]))


def _linear_regressor(training: Training) -> Part:
    model = training.model
    X, scale = _augmented(training)
    gram = functools.partial(Gram.of_checked, X, as_kernel("linear"), keep_sparse=True)
    squared = model.loss == "squared_epsilon_insensitive"
    build = DualProblem.squared_epsilon_insensitive if squared else DualProblem.epsilon_insensitive
    problem = build(
        gram(LOOKED_AT),
        training.y,
        2.0 * model.C if squared else model.C,
        model.epsilon,
        sample_weight=training.weight,
        fit_intercept=_is_free(model),
    )
    intercept = float(np.ravel(model.intercept_)[0])
    w = _vector(np.ravel(dense_weights(model.coef_)), intercept, scale)
    return Vector("", problem, np.arange(training.n), gram, X, w, intercept)

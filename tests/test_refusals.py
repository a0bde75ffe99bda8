"""What cannot be done is refused in words that say what was expected, what came, and what to do."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zerogap import (
    SVC,
    SVR,
    DualProblem,
    Gram,
    OneClassSVMPath,
    SVCPath,
    SVRPath,
    compare,
    iterate,
    leave_one_out,
    solve,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 2))
Y = np.where(X[:, 0] > 0, 1, 0)

WORDS = ["gap", "dual", "primal", "margin", "kernel", "bias"]
LABELS = [0, 0, 1, 1, 1, 0]


def in_common(A, B):
    return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])


# Points that are no rows of numbers.


@pytest.mark.parametrize("make", [SVC, SVR])
@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.partial_fit(WORDS, LABELS),
        lambda model: model.forget([0]),
        leave_one_out,
    ],
    ids=["partial_fit", "forget", "leave_one_out"],
)
def test_objects_do_not_come_and_go(make, change):
    model = make(kernel=in_common).fit(WORDS, LABELS)
    with pytest.raises(ValueError, match=r"no rows of numbers.*only fit takes them.*kernel='precomputed'"):
        change(model)
    assert model.predict(WORDS).shape == (6,)


@pytest.mark.parametrize("make", [SVC, SVR])
def test_a_first_partial_fit_of_objects_is_refused(make):
    with pytest.raises(ValueError, match="no rows of numbers"):
        make(kernel=in_common).partial_fit(WORDS, LABELS)


def test_what_the_refusal_advises_works():
    result = leave_one_out(SVC(kernel="precomputed").fit(in_common(WORDS, WORDS), LABELS))
    assert result.predictions.shape == (6,)


# Models that are none of ours.


def test_leave_one_out_says_whose_model_it_got():
    with pytest.raises(TypeError, match=r"takes a fitted zerogap\.SVC.*got sklearn's SVC\.$"):
        leave_one_out(sklearn.svm.SVC().fit(X, Y))


def test_leave_one_out_of_a_pipeline_names_its_last_step():
    pipe = make_pipeline(StandardScaler(), SVC()).fit(X, Y)
    with pytest.raises(TypeError, match=r"got sklearn's Pipeline\..*pipe\[-1\]"):
        leave_one_out(pipe)
    assert leave_one_out(pipe[-1]).predictions.shape == (20,)
    with pytest.raises(TypeError, match=r"got sklearn's Pipeline\.$"):
        leave_one_out(make_pipeline(sklearn.svm.SVC()))


@pytest.mark.parametrize("make", [SVC, SVR])
@pytest.mark.parametrize("name", ["partial_fit", "forget"])
def test_a_kernel_matrix_says_why_it_cannot_change(make, name):
    model = make(kernel="precomputed").fit(X @ X.T, Y)
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'") as raised:
        getattr(model, name)
    assert "kernel values, not points" in str(raised.value.__cause__)


@pytest.mark.parametrize("classes", [[0, 1, 2], ["a", "b", "c"]])
def test_a_class_without_weight_goes_by_its_label(classes):
    with pytest.raises(ValueError, match=f"Every point of class {classes[2]} has weight zero"):
        SVC().fit(X[:12], np.repeat(classes, 4), sample_weight=np.repeat([1.0, 1.0, 0.0], 4))


# One floor down.

SIGNS = 2.0 * Y - 1.0


@pytest.mark.parametrize(
    "build",
    [
        lambda X: DualProblem.hinge(X, SIGNS, C=1.0),
        lambda X: DualProblem.hard_margin(X, SIGNS),
        lambda X: DualProblem.squared_hinge(X, SIGNS, C=1.0),
        lambda X: DualProblem.epsilon_insensitive(X, SIGNS, C=1.0),
        lambda X: DualProblem.squared_epsilon_insensitive(X, SIGNS, C=1.0),
        lambda X: DualProblem.one_class(X, 0.5),
        lambda X: DualProblem.gaussian_process(X, SIGNS, 1.0),
        lambda X: DualProblem(X, SIGNS, -SIGNS, SIGNS, SIGNS),
    ],
)
def test_points_are_no_kernel_matrix(build):
    with pytest.raises(TypeError, match=r"gram must be a Gram.*got ndarray\. Pass Gram\(X\)"):
        build(X)


@pytest.mark.parametrize("run", [solve, iterate, compare])
def test_points_are_no_problem(run):
    with pytest.raises(
        TypeError, match=r"must be a DualProblem; got ndarray\. .*DualProblem.hinge\(Gram\(X\), y, C=1.0\)"
    ):
        run(X, "smo")


@pytest.mark.parametrize("run", [solve, iterate, compare])
def test_the_problem_comes_first(run):
    problem = DualProblem.hinge(Gram(X), SIGNS, C=1.0)
    with pytest.raises(TypeError, match=r"got list\. The problem comes first"):
        run(["smo"], problem)


def test_labels_of_a_problem_are_numbers():
    labels = np.where(Y == 1, "yes", "no")
    with pytest.raises(
        TypeError, match=r"one number for each of the 20 points; it begins with '(yes|no)'\. Encode.*use SVC"
    ):
        DualProblem.hinge(Gram(X), labels, C=1.0)
    with pytest.raises(TypeError, match=r"it begins with '(yes|no)'\.$"):
        DualProblem.epsilon_insensitive(Gram(X), labels, C=1.0)


def test_a_model_of_several_values_is_refused_with_what_takes_several():
    points = X[:12]
    for path, name in (
        (SVCPath(C_max=10.0).fit(points, np.tile([0, 1], 6)), "C"),
        (SVRPath(C_max=10.0).fit(points, np.arange(12.0)), "C"),
        (SVRPath(over="epsilon").fit(points, np.arange(12.0)), "epsilon"),
        (OneClassSVMPath().fit(points), "nu"),
    ):
        with pytest.raises(ValueError, match=rf"one {name}; got 2 of them. .*predict\(X, {name}=...\)"):
            path.at([0.5, 0.6])


# Values that a path is asked for.

PATHS = {
    "C": lambda: SVCPath(C_max=10.0).fit(X, Y),
    "C of pairs": lambda: SVCPath(C_max=1.0).fit(X, np.arange(20) % 3),
    "C of a regression": lambda: SVRPath(C_max=10.0).fit(X, X[:, 0]),
    "epsilon": lambda: SVRPath(over="epsilon").fit(X, X[:, 0]),
    "nu": lambda: OneClassSVMPath().fit(X),
}


@pytest.mark.parametrize("kind", PATHS)
def test_a_value_that_is_no_number_has_no_model(kind):
    model, name = PATHS[kind](), kind.split()[0]
    for value, words in (
        ("a", "'a' of type str"),
        ("0.5", "'0.5' of type str"),
        (True, "True"),
        (1j, "1j"),
        (None, "None"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be a number; got {words}.* within the range of the path"):
            model.at(value)
        if value is not None:  # the model's own
            with pytest.raises(ValueError, match=f"{name} must be a number, or several in a row; got {words}"):
                model.predict(X, **{name: [value]})
    with pytest.raises(ValueError, match=rf"{name} must be a number, or several in a row; got .* shape \(1, 1\)"):
        model.predict(X, **{name: [[0.5]]})
    np.testing.assert_array_equal(model.at(np.array(0.5)).predict(X), model.at(0.5).predict(X))


@pytest.mark.parametrize("read", ["coefficients_at", "bias_at", "certificate_at", "worst_certificate"])
def test_a_value_that_is_no_number_has_no_solution(read):
    path = PATHS["C"]().path_
    for value in ("a", [0.5, "a"]):
        with pytest.raises(ValueError, match=r"C must be a number, or several in a row; got .* of type str\. Use one"):
            getattr(path, read)(value)

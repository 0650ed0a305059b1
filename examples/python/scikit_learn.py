"""Estimators of scikit-learn and functions of SciPy on tensors that are sharded over a mesh.

Both dispatch to the array API of their arguments. Rows of the data are split over the devices; reductions over them
become all-reduces in the compiled programs.

usage: scikit_learn.py [--rows N]
"""

import argparse
import os

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

import meshard as ms  # noqa: E402
import numpy as np  # noqa: E402
import scipy.signal  # noqa: E402
import scipy.stats  # noqa: E402
import sklearn  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402


def make_data(rows):
    """Points of three classes in six dimensions, their classes, and a number for each, as NumPy arrays."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, rows).astype(np.int32)
    centers = rng.normal(size=(3, 6)) * 2
    points = centers[classes] + rng.normal(size=(rows, 6)) * np.linspace(2.0, 0.5, 6)
    numbers = points @ rng.normal(size=6) + 0.1 * rng.normal(size=rows)
    return points.astype(np.float32), classes, numbers.astype(np.float32)


def fit_all(points, classes, numbers):
    """What the estimators and functions return for these arrays, NumPy's or tensors: a dict of arrays."""
    with sklearn.config_context(array_api_dispatch=True):
        discriminant = LinearDiscriminantAnalysis().fit(points, classes)
        ridge = Ridge(alpha=1.0, solver="svd").fit(points, numbers)
        pca = PCA(n_components=2, svd_solver="covariance_eigh").fit(points)
        return {
            "classes": discriminant.predict(points),
            "ridge": ridge.coef_,
            "variances": pca.explained_variance_,
            "projected": pca.transform(points),
            "scores": scipy.stats.zscore(points),
            "skewness": scipy.stats.skew(points),
            "smoothed": scipy.signal.fftconvolve(numbers, numbers[:9], mode="valid"),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=800, help="the number of points (default: 800)")
    rows = parser.parse_args().rows
    data = make_data(rows)
    mesh = ms.Mesh({"rows": 8})
    sharded = [ms.mark_sharding(ms.asarray(array), mesh, ms.P("rows")) for array in data]
    found, expected = fit_all(*sharded), fit_all(*data)
    for name, tensor in found.items():
        difference = np.abs(np.abs(tensor.numpy()) - np.abs(expected[name])).max()  # components have either sign
        print(f"{name:10} {str(tensor.shape):10} on {tensor.stored_sharding or 'the host'}, "
              f"differs from NumPy by {difference:.1e}")
    accuracy = (found["classes"].numpy() == data[1]).mean()
    print(f"the discriminant finds {accuracy:.1%} of the classes")


if __name__ == "__main__":
    main()

// Random numbers from many distributions. Bit for bit as in JAX where the compiler computes
// logarithms and similar functions as JAX's does.
//
// All take a key and the shape of the result; every element depends only on the key and its own
// position.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard::random {

/// Normal with mean 0 and standard deviation 1, truncated to the open interval (low, high).
/// @error invalid argument unless dtype is f16, bf16, f32 or f64; the same for all functions of
/// this header.
Tensor truncated_normal(In key, double low, double high, Shape shape, DType dtype = kDefaultFloat);

/// Exponential with mean 1.
Tensor exponential(In key, Shape shape, DType dtype = kDefaultFloat);

/// Standard Gumbel: the limiting distribution of maxima. argmax(logits + gumbel) draws from
/// softmax(logits).
Tensor gumbel(In key, Shape shape, DType dtype = kDefaultFloat);

/// Laplace with mean 0 and scale 1.
Tensor laplace(In key, Shape shape, DType dtype = kDefaultFloat);

/// Cauchy with median 0 and scale 1.
Tensor cauchy(In key, Shape shape, DType dtype = kDefaultFloat);

/// Logistic with mean 0 and scale 1.
Tensor logistic(In key, Shape shape, DType dtype = kDefaultFloat);

/// exp of a normal with mean 0 and standard deviation `sigma`, a number or a tensor that broadcasts
/// to `shape`.
Tensor lognormal(In key, In sigma, Shape shape, DType dtype = kDefaultFloat);

/// Pareto with shape parameter `b` and minimum 1. `b` is a number or a tensor that broadcasts to
/// `shape`.
Tensor pareto(In key, In b, Shape shape, DType dtype = kDefaultFloat);

/// Rayleigh with this scale, a number or a tensor that broadcasts to `shape`.
Tensor rayleigh(In key, In scale, Shape shape, DType dtype = kDefaultFloat);

/// Weibull with this scale and concentration, numbers or tensors that broadcast to `shape`.
Tensor weibull_min(In key, In scale, In concentration, Shape shape, DType dtype = kDefaultFloat);

/// The length of a vector of three standard normals.
Tensor maxwell(In key, Shape shape, DType dtype = kDefaultFloat);

/// Triangular between `left` and `right` with its maximum at `mode`: numbers or tensors that
/// broadcast to `shape`.
Tensor triangular(In key, In left, In mode, In right, Shape shape, DType dtype = kDefaultFloat);

/// Wald (inverse Gaussian) with this mean and scale 1. The mean is a number or a tensor that
/// broadcasts to `shape`.
Tensor wald(In key, In mean, Shape shape, DType dtype = kDefaultFloat);

/// Uniformly distributed matrices with orthonormal columns (or rows, if there are more columns).
/// The result is [shape..., rows, columns], square by default. They are the q factors of normal
/// matrices, with the signs of r's diagonal (Mezzadri: How to Generate Random Matrices from the
/// Classical Compact Groups, 2007).
Tensor orthogonal(In key, std::int64_t rows, Shape shape = {}, DType dtype = kDefaultFloat,
                  std::optional<std::int64_t> columns = std::nullopt);

/// Normal vectors with the given means and covariance matrices. `mean` is [..., n], `covariance`
/// [..., n, n]; their leading dimensions broadcast to `shape`. The result is [shape..., n].
/// Covariances that are not positive definite give NaN.
Tensor multivariate_normal(In key, In mean, In covariance, Shape shape = {},
                           DType dtype = kDefaultFloat);

// The following use rejection sampling in one while_loop, until every element is accepted. They
// have no derivative with respect to their parameters (differentiating is an error of while_loop).
// Parameters are numbers or tensors that broadcast to `shape`.

/// Gamma with shape parameter `a` and scale 1 (Marsaglia and Tsang: A Simple Method for Generating
/// Gamma Variables, 2000). NaN for negative `a`.
Tensor gamma(In key, In a, Shape shape, DType dtype = kDefaultFloat);
/// The logarithm of gamma, accurate where the gamma itself would underflow to 0: for small `a`.
Tensor loggamma(In key, In a, Shape shape, DType dtype = kDefaultFloat);

/// Beta with parameters `a` and `b`, in [0, 1].
Tensor beta(In key, In a, In b, Shape shape, DType dtype = kDefaultFloat);

/// Vectors that sum to 1, from the Dirichlet distribution with concentrations `alpha` [..., k]. The
/// leading dimensions broadcast to `shape`; the result is [shape..., k].
/// @error alpha of rank 0
Tensor dirichlet(In key, In alpha, Shape shape = {}, DType dtype = kDefaultFloat);

/// Chi-square with `df` degrees of freedom: the sum of the squares of that many normals.
Tensor chisquare(In key, In df, Shape shape, DType dtype = kDefaultFloat);
/// Student's t with `df` degrees of freedom (jax.random.t).
Tensor student_t(In key, In df, Shape shape, DType dtype = kDefaultFloat);
/// The F distribution: the ratio of two chi-squares, each divided by its degrees of freedom
/// (jax.random.f).
Tensor fisher_f(In key, In numerator, In denominator, Shape shape, DType dtype = kDefaultFloat);

/// The generalized normal, with a density proportional to exp(-|x|^p): p = 2 is a normal with
/// variance 1/2, p = 1 is Laplace.
Tensor generalized_normal(In key, double p, Shape shape, DType dtype = kDefaultFloat);
/// Uniformly distributed in the unit ball of the p-norm in `d` dimensions: [shape..., d].
Tensor ball(In key, std::int64_t d, double p = 2, Shape shape = {}, DType dtype = kDefaultFloat);

/// Poisson: the number of events at this rate (Knuth's algorithm below a rate of 10, otherwise
/// Hörmann: The Transformed Rejection Method for Generating Poisson Random Variables, 1993). Its
/// derivative is zero.
/// @error a dtype that is not an integer.
Tensor poisson(In key, In rate, Shape shape, DType dtype = kDefaultInteger);

}  // namespace meshard::random

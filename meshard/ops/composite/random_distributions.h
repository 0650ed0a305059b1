// Random numbers of many distributions, bit for bit as JAX draws them where the compiler computes
// logarithms and the like as JAX's does.
//
// All take a key and the shape of the result; every element depends on the key and its own
// place only.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard::random {

/// Normal with mean 0 and standard deviation 1, kept inside the open interval (low, high).
/// @error invalid argument unless dtype is f16, bf16, f32 or f64; so for all of this header.
Tensor truncated_normal(In key, double low, double high, Shape shape, DType dtype = kDefaultFloat);

/// Exponential with mean 1.
Tensor exponential(In key, Shape shape, DType dtype = kDefaultFloat);

/// Standard Gumbel: the largest of many. argmax(logits + gumbel) draws from softmax(logits).
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

/// Pareto of shape `b` from 1 on: a number or a tensor that broadcasts to `shape`.
Tensor pareto(In key, In b, Shape shape, DType dtype = kDefaultFloat);

/// Rayleigh of this scale, a number or a tensor that broadcasts to `shape`.
Tensor rayleigh(In key, In scale, Shape shape, DType dtype = kDefaultFloat);

/// Weibull of this scale and concentration, numbers or tensors that broadcast to `shape`.
Tensor weibull_min(In key, In scale, In concentration, Shape shape, DType dtype = kDefaultFloat);

/// The length of a vector of three standard normals.
Tensor maxwell(In key, Shape shape, DType dtype = kDefaultFloat);

/// Triangular between `left` and `right`, most likely at `mode`: numbers or tensors that broadcast
/// to `shape`.
Tensor triangular(In key, In left, In mode, In right, Shape shape, DType dtype = kDefaultFloat);

/// Wald's (the inverse Gaussian) with this mean and scale 1. A number or a tensor that broadcasts
/// to `shape`.
Tensor wald(In key, In mean, Shape shape, DType dtype = kDefaultFloat);

/// Matrices whose columns are orthonormal (rows, if there are more columns), evenly distributed:
/// [shape..., rows, columns], square unless `columns` is given. The q factors of normal matrices,
/// with the signs of r's diagonal (Mezzadri: How to Generate Random Matrices from the Classical
/// Compact Groups, 2007).
Tensor orthogonal(In key, std::int64_t rows, Shape shape = {}, DType dtype = kDefaultFloat,
                  std::optional<std::int64_t> columns = std::nullopt);

/// Normal vectors with these means and covariance matrices: `mean` [..., n], `covariance`
/// [..., n, n], whose leading dimensions broadcast to `shape`. The result is [shape..., n].
/// Covariances that are not positive definite give NaN.
Tensor multivariate_normal(In key, In mean, In covariance, Shape shape = {},
                           DType dtype = kDefaultFloat);

// The following are drawn by trying until each element is accepted, in one while_loop: they have no
// derivative with respect to their parameters, which is an error of while_loop. Parameters are
// numbers or tensors that broadcast to `shape`.

/// Gamma of shape `a` and scale 1 (Marsaglia and Tsang: A Simple Method for Generating Gamma
/// Variables, 2000). NaN for negative `a`.
Tensor gamma(In key, In a, Shape shape, DType dtype = kDefaultFloat);
/// Its logarithm, exact where the number itself would be 0: for small `a`.
Tensor loggamma(In key, In a, Shape shape, DType dtype = kDefaultFloat);

/// Beta of `a` and `b`, in [0, 1].
Tensor beta(In key, In a, In b, Shape shape, DType dtype = kDefaultFloat);

/// Vectors that sum to 1, from Dirichlet's distribution of the concentrations `alpha` [..., k]: the
/// leading dimensions broadcast to `shape`, and the result is [shape..., k].
/// @error alpha of rank 0
Tensor dirichlet(In key, In alpha, Shape shape = {}, DType dtype = kDefaultFloat);

/// Chi-square of `df` degrees of freedom: the sum of the squares of as many normals.
Tensor chisquare(In key, In df, Shape shape, DType dtype = kDefaultFloat);
/// Student's t of `df` degrees of freedom (jax.random.t).
Tensor student_t(In key, In df, Shape shape, DType dtype = kDefaultFloat);
/// The F distribution: chi-squares over their degrees of freedom, one by the other
/// (jax.random.f).
Tensor fisher_f(In key, In numerator, In denominator, Shape shape, DType dtype = kDefaultFloat);

/// With a density of exp(-|x|^p): p = 2 is a normal of variance 1/2, p = 1 Laplace's.
Tensor generalized_normal(In key, double p, Shape shape, DType dtype = kDefaultFloat);
/// Evenly distributed in the unit ball of the p-norm in `d` dimensions: [shape..., d].
Tensor ball(In key, std::int64_t d, double p = 2, Shape shape = {}, DType dtype = kDefaultFloat);

/// How many events happen at this rate: Poisson's (Knuth's way below a rate of 10, else Hörmann:
/// The Transformed Rejection Method for Generating Poisson Random Variables, 1993). Its derivative
/// is zero.
/// @error a dtype that is not an integer.
Tensor poisson(In key, In rate, Shape shape, DType dtype = kDefaultInteger);

}  // namespace meshard::random

// Random numbers of many distributions, bit for bit as JAX draws them where the compiler computes
// logarithms and the like as JAX's does.
//
// All take a key and the shape of the result; every element depends on the key and its own
// place only.
#pragma once
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

}  // namespace meshard::random

// The arrays of `meshard run`, `same` and `explicit`: statistics, differences, random ones.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/runtime/imported_program.h"

namespace meshard::tool {

/// `mean 0.5, min -1, max 2`, and how many elements are not finite; of a scalar, its value.
std::string statistics_of(const HostArray& array);

/// The first difference and the number of elements that differ: those for which |got - want| <= T *
/// (1 + |want|) is false. Equal infinities are equal, and so are two NaNs. Empty if there is none.
/// @param tolerance T; none: by the dtype of `got`
std::string difference_of(const HostArray& got, const HostArray& want,
                          const std::optional<double>& tolerance);

/// The type of an argument; that of a key of random numbers if the program does not say it.
TensorType sent_type(const ImportedValue& argument);

/// Floating-point numbers between -1 and 1, integers from 0 to 7, and bools. Equal seeds give equal
/// arrays.
HostArray random_array(const TensorType& type, std::uint64_t seed);

/// The results of a program for random arguments, which are those of another one with such types.
std::vector<HostArray> results_for_random(const ImportedProgram& program);

/// How the results of two programs differ; empty if they do not.
std::string difference_of_results(const std::vector<HostArray>& got,
                                  const std::vector<HostArray>& want,
                                  const std::optional<double>& tolerance);

/// The array as .npz files hold it: those of narrow floats are f32, which holds all their values.
HostArray storable(const HostArray& array);

}  // namespace meshard::tool

// What the steps of a program can be. One entry of the table is all there is to an operation: how
// it is drawn, run, printed and how far its results may be off.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "meshard/meshard.h"
#include "tests/property/sharded_program.h"

namespace meshard::property {

class Draw;

/// What an operation gets.
struct Arguments {
  std::span<const Tensor> operands;
  std::span<const Bounds> bounds;  ///< of the operands
  const Step& step;
  const std::vector<Mesh>* meshes;  ///< nullptr: the run without shardings

  const TensorType& type(int i) const { return operands[i].type(); }
  Dimensions list(int i) const { return Dimensions(step.lists[i].begin(), step.lists[i].end()); }
  std::int64_t number(int i) const { return step.lists[i].at(0); }
};

struct Operation {
  const char* name;
  /// The call as C++. In it stand A(i) for an operand, L(i) for a list of dimensions, S(i) for a
  /// shape, N(i), B(i), D(i), E(i) for a number, a bool, a dtype, an einsum of list i, V(i) for
  /// host data, M for mesh and spec.
  const char* code;
  Tensor (*run)(const Arguments&);
  /// Fills the step in; false: there are no operands for it.
  bool (*draw)(Draw&, Step&);
  Bounds (*bounds)(const Arguments&, const TensorType& result);
  /// True if it may stand in a program of which the gradient is taken.
  bool smooth = false;
  /// How often it is drawn.
  int weight = 2;
};

/// All of them; those of one group.
const std::vector<const Operation*>& operations();
std::span<const Operation> element_wise_operations();
std::span<const Operation> contraction_operations();
std::span<const Operation> movement_operations();
std::span<const Operation> placement_operations();

/// The einsums that are drawn.
std::span<const char* const> einsum_specs();

// Bounds that several operations share.

/// How far apart neighbouring numbers of about 1 are; 0 for integers and bools.
double epsilon(DType dtype);
/// Of a result of at most `size`, rounded some times; an integer wraps around and stays exact.
Bounds rounded(const TensorType& result, double size, double error, double roundings = 4);
/// Elements are picked, not computed.
Bounds moved(const Arguments& args, const TensorType& result);
/// A sum of `count` products of elements of the two operands.
Bounds contracted(const Arguments& args, const TensorType& result, double count);

/// The code and the function of an Operation, of one expression.
#define MESHARD_CALL(...) \
#__VA_ARGS__, [](const Arguments& args) -> Tensor {                                           \
    [[maybe_unused]] auto A = [&](int i) -> const Tensor& { return args.operands[i]; };         \
    [[maybe_unused]] auto L = [&](int i) { return args.list(i); };                              \
    [[maybe_unused]] auto S = [&](int i) { return Shape(args.list(i)); };                       \
    [[maybe_unused]] auto N = [&](int i) { return args.number(i); };                            \
    [[maybe_unused]] auto B = [&](int i) { return args.number(i) != 0; };                       \
    [[maybe_unused]] auto D = [&](int i) { return static_cast<DType>(args.number(i)); };        \
    [[maybe_unused]] auto E = [&](int i) { return einsum_specs()[args.number(i)]; };            \
    [[maybe_unused]] auto V = [&](int i) {                                                      \
      return input_data(args.type(0), static_cast<int>(args.number(i)));                        \
    };                                                                                          \
    return __VA_ARGS__;                                                                         \
  }

}  // namespace meshard::property

// What the steps of a program can be. One entry of the table is all there is to an operation: how
// it is drawn, run, printed and how far its results may be off.
#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/meshard.h"
#include "tests/property/sharded_program/program.h"

namespace meshard::property {

class Draw;

/// Runs a body of the step: its number, its arguments.
using CallBody = std::function<std::vector<Tensor>(int, std::vector<Tensor>)>;
using BoundBody = std::function<std::vector<Bounds>(int, std::vector<Bounds>)>;

/// What an operation gets.
struct Arguments {
  std::span<const Tensor> operands;
  std::span<const Bounds> bounds;  ///< of the operands
  const Step& step;
  const std::vector<Mesh>* meshes;  ///< nullptr: the run without shardings
  CallBody call;
  BoundBody bounds_of_body;

  const TensorType& type(int i) const { return operands[i].type(); }
  Dimensions list(int i) const { return Dimensions(step.lists[i].begin(), step.lists[i].end()); }
  std::int64_t number(int i) const { return step.lists[i].at(0); }
  /// Of a result of a body, for arguments of these bounds.
  Bounds bound(int body, std::vector<Bounds> arguments, std::size_t result = 0) const {
    return bounds_of_body(body, std::move(arguments)).at(result);
  }
};

/// A body as a function of tensors.
struct OneResult {
  const Arguments* args;
  int body;
  template <class... T>
  Tensor operator()(const T&... arguments) const {
    return args->call(body, {Tensor(arguments)...}).at(0);
  }
};
struct TwoResults {
  const Arguments* args;
  int body;
  template <class... T>
  std::pair<Tensor, Tensor> operator()(const T&... arguments) const {
    std::vector<Tensor> results = args->call(body, {Tensor(arguments)...});
    return {results.at(0), results.at(1)};
  }
};

struct HostValue;
struct HostArguments;
using OnHost = HostValue (*)(const HostArguments&);

struct Operation {
  const char* name;
  /// The call as C++. A(i) stands for an operand, L(i) for a list of dimensions, S(i) for a
  /// shape, N(i), B(i), D(i), E(i) for a number, a bool, a dtype, an einsum of list i, V(i) for
  /// host data, M for mesh and spec, W for the mesh alone, F(i) and G(i) for a body of one and of
  /// two results.
  const char* code;
  Tensor (*run)(const Arguments&);
  /// Fills the step in; false: there are no operands for it.
  bool (*draw)(Draw&, Step&);
  Bounds (*bounds)(const Arguments&, const TensorType& result);
  /// True if it may appear in a program of which the gradient is taken.
  bool smooth = false;
  /// How often it is drawn.
  int weight = 2;
  /// The same on the host. nullptr: it is not drawn where derivatives are compared with
  /// differences.
  OnHost on_host = nullptr;
  /// True if the parts of a result are made of the same parts of the operands.
  bool element_wise = false;
  /// True if it differentiates its body.
  bool is_derivative = false;
  /// True if it is drawn in programs of Kind::kStages only.
  bool only_in_stages = false;

  bool has_bodies() const;
  /// True if the placement of a step is part of it.
  bool names_mesh() const;
};

/// All of them; those of one group.
const std::vector<const Operation*>& operations();
std::span<const Operation> element_wise_operations();
std::span<const Operation> contraction_operations();
std::span<const Operation> movement_operations();
std::span<const Operation> placement_operations();
std::span<const Operation> control_flow_operations();
std::span<const Operation> collective_operations();
std::span<const Operation> window_operations();
/// The functions that the code of collectives calls.
extern const char* const kCollectiveTools;

/// The einsums that are drawn.
std::span<const char* const> einsum_specs();

// Bounds that several operations share.

/// How far apart neighboring numbers of about 1 are; 0 for integers and bools.
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
    [[maybe_unused]] auto F = [&](int i) { return OneResult{&args, i}; };                       \
    [[maybe_unused]] auto G = [&](int i) { return TwoResults{&args, i}; };                      \
    [[maybe_unused]] auto V = [&](int i) {                                                      \
      return input_data(args.type(0), static_cast<int>(args.number(i)));                        \
    };                                                                                          \
    return __VA_ARGS__;                                                                         \
  }

}  // namespace meshard::property

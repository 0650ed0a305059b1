// A stage of a pipeline: a function with its parameters and its mesh.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "meshard/base/shared_value.h"
#include "meshard/graph/structure_match.h"
#include "meshard/mesh/mesh.h"
#include "meshard/optim/optimizers.h"

namespace meshard::internal {

template <class T>
inline constexpr char kStructureTag = 0;

/// True if two values of type T differ at most in their tensors: they have the same lengths and
/// keys, the same numbers, and equal values of Static.
template <class T>
bool equal_around_tensors(const void* a, const void* b) {
  const T &one = *static_cast<const T*>(a), &other = *static_cast<const T*>(b);
  return structure::internal::same_form(one, other) &&
         structure::constant_difference(one, other).empty();
}

/// Value type: a structure of tensors of any C++ type, such as what one stage of a pipeline hands
/// to the next.
struct AnyStructure {
  std::vector<Tensor> tensors;
  /// The structure with undefined tensors.
  std::shared_ptr<const void> prototype;
  /// Identifies its C++ type.
  const void* type = nullptr;
  /// equal_around_tensors() of that type.
  bool (*is_equal)(const void*, const void*) = nullptr;

  template <class T>
  static AnyStructure of(T value) {
    AnyStructure made{structure::tensors(value), nullptr, &kStructureTag<T>,
                      &equal_around_tensors<T>};
    made.prototype = shared_value<T>(
        structure::with_tensors(std::move(value), std::vector<Tensor>(made.tensors.size())));
    return made;
  }
  template <class T>
  bool holds() const {
    return type == &kStructureTag<T>;
  }
  /// @pre holds<T>()
  template <class T>
  T as() const {
    return structure::with_tensors(*static_cast<const T*>(prototype.get()), tensors);
  }
  AnyStructure with(std::vector<Tensor> others) const {
    return {std::move(others), prototype, type, is_equal};
  }
  /// True if the two differ at most in their tensors.
  bool same_around_tensors(const AnyStructure& other) const {
    return type == other.type &&
           (prototype == other.prototype || is_equal(prototype.get(), other.prototype.get()));
  }
};

}  // namespace meshard::internal

namespace meshard {

/// The optimizer of a pipeline; std::monostate: none, only gradients are computed.
using PipelineOptimizer = std::variant<std::monostate, optim::Sgd, optim::Adam, optim::AdamW>;

/// Options of a PipelineStage.
struct PipelineStageOptions {
  /// The name in messages and of the compiled programs; empty: `stage 0`.
  std::string name = {};
  /// Keeps only the inputs of the stage for the backward pass, which computes everything else
  /// again. Default: false, which keeps the cheapest set of values (cheapest_residuals()).
  bool checkpoint = false;
};

namespace internal {

/// The function of a stage, without its C++ types.
class StageFunction {
 public:
  virtual ~StageFunction() = default;
  virtual bool takes_carry() const = 0;
  /// True if the function can be called with these structures.
  virtual bool accepts_carry(const AnyStructure& carry) const = 0;
  virtual bool accepts_batch(const AnyStructure& batch) const = 0;
  /// Records the function. @pre the structures are accepted; `carry` is null if it takes none
  virtual AnyStructure call(std::span<const Tensor> parameters, const AnyStructure* carry,
                            const AnyStructure& batch) const = 0;
  /// The optimizer's initial state. @pre the optimizer is not std::monostate
  virtual AnyStructure init(const PipelineOptimizer& optimizer,
                            std::span<const Tensor> parameters) const = 0;
  /// Records one step of the optimizer. @return the new parameters, and the new state
  virtual std::pair<std::vector<Tensor>, std::vector<Tensor>> update(
      const PipelineOptimizer& optimizer, std::span<const Tensor> parameters,
      std::span<const Tensor> gradients, const AnyStructure& state) const = 0;
};

/// The arguments and the result of a function object with one operator().
template <class F>
struct StageSignature : StageSignature<decltype(&F::operator())> {};
template <class R, class... A>
struct StageSignature<R (*)(A...)> {
  using Result = std::remove_cvref_t<R>;
  using Arguments = std::tuple<std::remove_cvref_t<A>...>;
};
template <class C, class R, class... A>
struct StageSignature<R (C::*)(A...) const> : StageSignature<R (*)(A...)> {};

template <class F>
concept HasStageSignature = std::is_pointer_v<F> || requires {
  &F::operator();
};

template <class Params, class F>
class TypedStageFunction final : public StageFunction {
  using Signature = StageSignature<F>;
  using Arguments = typename Signature::Arguments;
  static constexpr std::size_t kCount = std::tuple_size_v<Arguments>;
  static_assert(kCount == 2 || kCount == 3,
                "a stage is a function of (parameters, batch), or of (parameters, result of the "
                "previous stage, batch)");
  static_assert(std::is_same_v<std::tuple_element_t<0, Arguments>, Params>,
                "the first argument of a stage has the type of its parameters");
  using Carry = std::tuple_element_t<kCount == 3 ? 1 : 0, Arguments>;
  using Batch = std::tuple_element_t<kCount - 1, Arguments>;

 public:
  TypedStageFunction(F f, const Params& parameters)
      : f_(std::move(f)), parameters_(AnyStructure::of(parameters)) {}

  bool takes_carry() const override { return kCount == 3; }
  bool accepts_carry(const AnyStructure& carry) const override {
    return kCount == 3 && carry.holds<Carry>();
  }
  bool accepts_batch(const AnyStructure& batch) const override { return batch.holds<Batch>(); }

  AnyStructure call(std::span<const Tensor> parameters, const AnyStructure* carry,
                    const AnyStructure& batch) const override {
    Params given = typed(parameters);
    if constexpr (kCount == 3)
      return AnyStructure::of(f_(given, carry->as<Carry>(), batch.as<Batch>()));
    else
      return AnyStructure::of(f_(given, batch.as<Batch>()));
  }

  AnyStructure init(const PipelineOptimizer& optimizer,
                    std::span<const Tensor> parameters) const override {
    return std::visit(
        [&](const auto& one) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, std::monostate>)
            return AnyStructure();
          else
            return AnyStructure::of(optim::init(one, typed(parameters)));
        },
        optimizer);
  }

  std::pair<std::vector<Tensor>, std::vector<Tensor>> update(
      const PipelineOptimizer& optimizer, std::span<const Tensor> parameters,
      std::span<const Tensor> gradients, const AnyStructure& state) const override {
    return std::visit(
        [&](const auto& one) {
          using Optimizer = std::remove_cvref_t<decltype(one)>;
          std::pair<std::vector<Tensor>, std::vector<Tensor>> out;
          if constexpr (!std::is_same_v<Optimizer, std::monostate>) {
            using State = decltype(optim::init(one, std::declval<const Params&>()));
            auto [params, next] =
                optim::update(one, typed(parameters), typed(gradients), state.as<State>());
            out = {structure::tensors(params), structure::tensors(next)};
          }
          return out;
        },
        optimizer);
  }

 private:
  Params typed(std::span<const Tensor> tensors) const {
    return parameters_.with({tensors.begin(), tensors.end()}).template as<Params>();
  }

  F f_;
  AnyStructure parameters_;
};

}  // namespace internal

/// A stage of a pipeline: a function, its parameters, and the mesh on which it runs. The meshes of
/// several stages may be of any shapes, share devices, or be disjoint.
///
/// The first stage is a function of (parameters, batch), the others of (parameters, what the
/// previous stage returned, batch). The argument `batch` is a microbatch; stages may use any part
/// of it. The last stage returns the loss of the microbatch, a float of rank 0. All of these are
/// structures of tensors. The function must state its argument types (no `auto`).
///
/// @code
/// Mesh mesh({{"stage", 2}, {"x", 4}});
/// PipelineStage first(*mesh.submesh({"x"}, 0), ones({4, 8}),
///                     [](const Tensor& w, const Tensor& x) { return tanh(matmul(x, w)); });
/// PipelineStage last(*mesh.submesh({"x"}, 4), ones({8}),
///                    [](const Tensor& w, const Tensor& h, const Tensor& x) {
///                      return mean(square(matmul(h, w))) + 0.0f * sum(x);
///                    });
/// @endcode
class PipelineStage {
 public:
  template <class Params, class F>
  PipelineStage(Mesh mesh, const Params& parameters, F f, PipelineStageOptions options = {},
                SourceLocation where = SourceLocation::current())
      : mesh_(std::move(mesh)),
        parameters_(internal::AnyStructure::of(parameters)),
        options_(std::move(options)),
        where_(where) {
    static_assert(internal::HasStageSignature<F>,
                  "the function of a stage states its argument types: "
                  "[](const Params&, const Carry&, const Batch&)");
    if constexpr (internal::HasStageSignature<F>)
      function_ =
          std::make_shared<internal::TypedStageFunction<Params, F>>(std::move(f), parameters);
  }

  const Mesh& mesh() const { return mesh_; }
  const PipelineStageOptions& options() const { return options_; }
  SourceLocation where() const { return where_; }
  const internal::AnyStructure& parameters() const { return parameters_; }
  const internal::StageFunction& function() const { return *function_; }
  std::shared_ptr<const internal::StageFunction> shared_function() const { return function_; }

 private:
  Mesh mesh_;
  internal::AnyStructure parameters_;
  PipelineStageOptions options_;
  SourceLocation where_;
  std::shared_ptr<const internal::StageFunction> function_;
};

}  // namespace meshard

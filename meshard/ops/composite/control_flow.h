// Loops and branches inside programs, on nested structures of tensors.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/body_function.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure_match.h"
#include "meshard/ops/scan.h"
#include "meshard/ops/switch_case.h"
#include "meshard/ops/while_loop.h"

namespace meshard {

/// Options of scan().
struct ScanOptions {
  /// Runs from the last slice to the first. Default: false.
  bool reverse = false;
  /// The number of steps; required if nothing is sliced.
  std::optional<std::int64_t> length = std::nullopt;
  /// Steps per iteration of the compiled loop, forward and backward. Default: 1. The body is
  /// compiled that many times, and the compiler may fuse across these steps. With `length` or more
  /// no loop is emitted. The recorded program does not grow.
  std::int64_t unroll = 1;
};

}  // namespace meshard

namespace meshard::internal {

/// The type of a value in a loop: numbers become tensors.
template <class T>
using LoopState = std::conditional_t<std::is_arithmetic_v<T>, Tensor, T>;
Tensor number_state(In number);
template <class T>
LoopState<T> loop_state(const T& value, SourceLocation where) {
  if constexpr (std::is_arithmetic_v<T>)
    return number_state(In(value, where));
  else
    return value;
}

template <class T>
std::vector<std::string> paths_of(const T& value, const std::string& name) {
  std::vector<std::string> paths;
  structure::for_each(
      value,
      [&](const auto& leaf, const std::string& path) {
        if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>) paths.push_back(path);
      },
      name);
  return paths;
}

/// A loop's carry, for messages.
struct CarryForm {
  std::string_view op;
  std::vector<std::string> paths;
  SourceLocation where;
};
/// The tensors of the carry that a body returns, in the order of the initial one's.
/// @error invalid argument: it has another structure, or other numbers, than the initial one.
template <class T>
std::vector<Tensor> returned_carry(const CarryForm& form, const T& initial, const T& returned) {
  const structure::MatchNames names{form.op, "initial carry", "carry that the body returns", true};
  std::vector<Tensor> tensors = structure::matched_tensors(initial, returned, names, form.where);
  structure::check_constants(initial, returned, names, form.where);
  return tensors;
}

/// The body of a loop whose first values are its carries. A carry whose initial value has a
/// sharding keeps it in every step.
/// @error from the body, when it runs: a carry with another type, or over explicit axes another
/// sharding, than its initial value, naming its path and both.
BodyFunction keeping_carries(const CarryForm& form, std::span<const Tensor> carries,
                             BodyFunction body);
/// The loop's results; carries whose initial value has a sharding keep it.
std::vector<Tensor> kept_results(std::span<const Tensor> carries, std::vector<Tensor> results);

/// The common number of slices of all tensors along their first dimension.
/// @error they differ, or there is neither a tensor nor `length`.
std::int64_t scan_length(const std::vector<Tensor>& sliced, const std::vector<std::string>& paths,
                         std::optional<std::int64_t> length, SourceLocation where);

/// The types of the results of all branches.
struct BranchForm {
  std::string_view op;
  SourceLocation where;
  std::vector<TensorType> types = {};
  bool known = false;

  /// @error invalid argument: a branch whose result types differ from the first one's, naming path
  /// and both.
  void check(const std::vector<std::string>& paths, const std::vector<Tensor>& now);
};

/// One branch as a function of tensors; stores the result of the first one as the prototype of the
/// structure. @error invalid argument: another branch's result has another structure, or other
/// numbers.
template <class Result, class F, class Arguments>
BodyFunction branch_function(const F& f, const Arguments& arguments, std::optional<Result>& result,
                             BranchForm& form) {
  return [&f, &arguments, &result, &form](std::span<const Tensor> given) {
    Result now = std::apply(f, structure::with_tensors(arguments, given));
    if (!result) result = now;
    const structure::MatchNames names{form.op, "result of one function",
                                      "result of another function", true};
    std::vector<Tensor> tensors = structure::matched_tensors(*result, now, names, form.where);
    structure::check_constants(*result, now, names, form.where);
    form.check(paths_of(*result, "result"), tensors);
    return tensors;
  };
}

template <class Result, class Arguments, class... F>
Result run_branches(std::string_view op, const In& index, const Arguments& arguments,
                    const F&... f) {
  std::optional<Result> result;
  BranchForm form{.op = op, .where = effective_source(index.where)};
  std::vector<BodyFunction> branches{branch_function(f, arguments, result, form)...};
  std::vector<Tensor> tensors =
      switch_tensors(index, branches, structure::tensors(arguments), index.where);
  return structure::with_tensors(std::move(*result), tensors);
}

/// A loop's counter: an i32 of rank 0.
Tensor index_state(std::int64_t number);
Tensor next_index(const Tensor& index);
Tensor index_is_less(const Tensor& index, const Tensor& end);
/// A loop bound as an i32. @error not an integer of rank 0
Tensor bound(const In& number);
/// 1 for true, 0 for false. @error not a bool of rank 0
Tensor case_of(const In& predicate);

/// Stacks corresponding tensors: result i stacks tensor i of every structure.
std::vector<Tensor> stack_each(const std::vector<std::vector<Tensor>>& structures,
                               SourceLocation where);
std::vector<Tensor> slice_each(const std::vector<Tensor>& stacked, std::int64_t i,
                               SourceLocation where);

}  // namespace meshard::internal

namespace meshard {

/// Runs `f(carry, slice)` once per slice of `xs` along the first dimension, in order. f returns
/// `std::pair(carry, y)`. The result is the last carry, and the y of all steps stacked along a new
/// first dimension. `init`, `xs` and y are tensors or structures of them; `std::tuple<>()` means
/// nothing. Without xs, ScanOptions::length is the number of steps. f is recorded once, regardless
/// of the number of slices.
///
/// @code
/// auto step = [](Tensor c, Tensor x) { return std::pair(c + x, c + x); };
/// scan(step, zeros({}), arange(5.0)).second;    // 0, 1, 3, 6, 10
/// @endcode
///
/// Tensors that f captures are the same in every step. A carry whose initial value has a sharding
/// keeps it. The derivative keeps residuals of every step; checkpoint(f) reduces them.
/// @error f returns a carry of another type or structure than its initial value; xs with different
/// numbers of slices.
template <class F, class Carry, class Xs = std::tuple<>>
auto scan(const F& f, const Carry& init, const Xs& xs = {}, ScanOptions options = {},
          SourceLocation where = SourceLocation::current()) {
  using State = internal::LoopState<Carry>;
  where = effective_source(where);
  const State first = internal::loop_state(init, where);
  using Step = std::remove_cvref_t<std::invoke_result_t<const F&, State, Xs>>;
  using Y = std::remove_cvref_t<typename Step::second_type>;
  static_assert(std::is_convertible_v<typename Step::first_type, State>,
                "the function given to scan must return std::pair(carry, y), with a carry of the "
                "type of init");
  std::vector<Tensor> carries = structure::tensors(first), sliced = structure::tensors(xs);
  std::int64_t length =
      internal::scan_length(sliced, internal::paths_of(xs, "xs"), options.length, where);
  internal::CarryForm form{"scan", internal::paths_of(first, "carry"), where};
  std::optional<Y> prototype;
  BodyFunction body = [&](std::span<const Tensor> given) {
    Step step = f(structure::with_tensors(first, given.first(carries.size())),
                  structure::with_tensors(xs, given.subspan(carries.size())));
    const State next = std::move(step.first);
    std::vector<Tensor> results = internal::returned_carry(form, first, next);
    std::vector<Tensor> ys = structure::tensors(step.second);
    for (Tensor& y : ys) results.push_back(std::move(y));
    prototype = std::move(step.second);
    return results;
  };
  std::vector<Tensor> results = internal::kept_results(
      carries, scan_tensors({carries, sliced, length, options.reverse, options.unroll},
                            internal::keeping_carries(form, carries, body), where));
  std::span<const Tensor> all(results);
  return std::pair<State, Y>(
      structure::with_tensors(first, all.first(carries.size())),
      structure::with_tensors(std::move(*prototype), all.subspan(carries.size())));
}

/// Applies `f` to each slice of `xs` along the first dimension, sequentially, and stacks the
/// results. To apply it to all slices at once use vmap.
template <class F, class Xs>
auto map(const F& f, const Xs& xs, SourceLocation where = SourceLocation::current()) {
  auto step = [&f](const std::tuple<>&, const Xs& slice) {
    return std::pair(std::tuple<>(), f(slice));
  };
  return scan(step, std::tuple<>(), xs, {}, where).second;
}

/// Repeats `carry = body(carry)` while `condition(carry)`, a bool of rank 0, is true. The carry is
/// a tensor or a structure of tensors. It has no derivative, because the number of iterations is
/// not known in advance; use scan, or fori_loop with bounds that are numbers.
/// @error body returns a carry of another type or structure.
template <class Condition, class F, class Carry>
internal::LoopState<Carry> while_loop(const Condition& condition, const F& body, const Carry& init,
                                      SourceLocation where = SourceLocation::current()) {
  using State = internal::LoopState<Carry>;
  where = effective_source(where);
  const State first = internal::loop_state(init, where);
  std::vector<Tensor> carries = structure::tensors(first);
  internal::CarryForm form{"while_loop", internal::paths_of(first, "carry"), where};
  BodyFunction test = [&](std::span<const Tensor> given) {
    return std::vector<Tensor>{condition(structure::with_tensors(first, given))};
  };
  BodyFunction step = [&](std::span<const Tensor> given) {
    const State next = body(structure::with_tensors(first, given));
    return internal::returned_carry(form, first, next);
  };
  std::vector<Tensor> results =
      while_tensors(test, internal::keeping_carries(form, carries, step), carries, where);
  return structure::with_tensors(first, internal::kept_results(carries, std::move(results)));
}

/// `carry = body(i, carry)` for i = low, ..., high - 1, an i32 of rank 0. With bounds that are
/// numbers it is a scan, which has a derivative.
template <class F, class Carry>
internal::LoopState<Carry> fori_loop(std::int64_t low, std::int64_t high, const F& body,
                                     const Carry& init,
                                     SourceLocation where = SourceLocation::current()) {
  using State = internal::LoopState<Carry>;
  auto step = [&body](const std::pair<Tensor, State>& carry, const std::tuple<>&) {
    State next = body(carry.first, carry.second);
    return std::pair(std::pair(internal::next_index(carry.first), std::move(next)), std::tuple<>());
  };
  std::pair<Tensor, State> first(internal::index_state(low),
                                 internal::loop_state(init, effective_source(where)));
  return scan(step, first, std::tuple<>(), {.length = high > low ? high - low : 0}, where)
      .first.second;
}

/// The same with bounds that are tensors: a while_loop, without a derivative.
/// @error a bound that is not an integer of rank 0.
template <class F, class Carry>
internal::LoopState<Carry> fori_loop(In low, In high, const F& body, const Carry& init) {
  using State = internal::LoopState<Carry>;
  auto test = [](const std::tuple<Tensor, Tensor, State>& carry) {
    return internal::index_is_less(std::get<0>(carry), std::get<1>(carry));
  };
  auto step = [&body](const std::tuple<Tensor, Tensor, State>& carry) {
    const auto& [i, end, state] = carry;
    State next = body(i, state);
    return std::tuple<Tensor, Tensor, State>(internal::next_index(i), end, std::move(next));
  };
  std::tuple<Tensor, Tensor, State> first(internal::bound(low), internal::bound(high),
                                          internal::loop_state(init, effective_source(low.where)));
  return std::get<2>(while_loop(test, step, first, low.where));
}

/// Calls `when_true` with the arguments if `predicate`, a bool of rank 0, is true, otherwise
/// `when_false`. Only one of them runs. Both return tensors, or structures, of the same types;
/// tensors can be arguments or captured.
/// @error results of different types or structures.
template <class F, class G, class... Arguments>
auto cond(In predicate, const F& when_true, const G& when_false, const Arguments&... arguments) {
  using Result = std::remove_cvref_t<std::invoke_result_t<const F&, const Arguments&...>>;
  Tensor index = internal::case_of(predicate);
  return internal::run_branches<Result>("cond", In(index, predicate.where),
                                        std::tuple<Arguments...>(arguments...), when_false,
                                        when_true);
}

/// Calls function number `index` with the arguments; an index out of range is clamped. Only that
/// function runs. All return tensors, or structures, of the same types.
/// @error an index that is not an integer of rank 0; results of different types or structures.
template <class... F, class... Arguments>
auto switch_case(In index, const std::tuple<F...>& functions,
                 const Arguments&... arguments) requires(sizeof...(F) > 0) {
  using Result = std::remove_cvref_t<
      std::invoke_result_t<const std::tuple_element_t<0, std::tuple<F...>>&, const Arguments&...>>;
  return std::apply(
      [&](const auto&... f) {
        return internal::run_branches<Result>("switch_case", index,
                                              std::tuple<Arguments...>(arguments...), f...);
      },
      functions);
}

/// The same for functions that return a tensor: `switch_case(i, {f, g, h}, x)`.
template <class... Arguments>
Tensor switch_case(
    In index,
    const std::type_identity_t<std::vector<std::function<Tensor(const Arguments&...)>>>& functions,
    const Arguments&... arguments) {
  std::optional<Tensor> result;
  internal::BranchForm form{.op = "switch_case", .where = effective_source(index.where)};
  std::vector<BodyFunction> branches;
  std::tuple<Arguments...> all(arguments...);
  for (const auto& f : functions)
    branches.push_back(internal::branch_function(f, all, result, form));
  return switch_tensors(index, branches, structure::tensors(all), index.where)[0];
}

/// Applies a stack of layers: `x = f(params_i, x)` for each slice `params_i` of `stacked_params`.
/// That is any structure whose tensors have the layers along their first dimension
/// (stack_structures makes one). A single layer is compiled, regardless of their number.
///
/// @code
/// Tensor weights = ones({12, 4, 4}), x = ones({2, 4});
/// repeat(weights, x, [](Tensor w, Tensor h) { return tanh(matmul(h, w)); });
/// @endcode
/// @error as scan.
template <class Params, class State, class F>
State repeat(const Params& stacked_params, const State& x, const F& f,
             SourceLocation where =
                 SourceLocation::current()) requires(!std::is_arithmetic_v<Params> &&
                                                     std::is_invocable_v<const F&, const Params&,
                                                                         const State&>) {
  auto step = [&f](const State& state, const Params& params) {
    return std::pair<State, std::tuple<>>(f(params, state), {});
  };
  return scan(step, x, stacked_params, {}, where).first;
}

/// Applies `x = f(x)` `count` times.
template <class State, class F>
State repeat(std::int64_t count, const State& x, const F& f,
             SourceLocation where =
                 SourceLocation::current()) requires std::is_invocable_v<const F&, const State&> {
  auto step = [&f](const State& state, const std::tuple<>&) {
    return std::pair<State, std::tuple<>>(f(state), {});
  };
  return scan(step, x, std::tuple<>(), {.length = count}, where).first;
}

/// Stacks structures: each tensor of the result stacks those of all `structures` along a new first
/// dimension.
/// @error no structures, or structures whose tensors differ in paths or type, or that differ in a
/// number.
template <class T>
T stack_structures(const std::vector<T>& structures,
                   SourceLocation where = SourceLocation::current()) {
  std::vector<std::vector<Tensor>> all;
  for (const T& each : structures) {
    const structure::MatchNames names{"stack_structures", "first structure", "other structure",
                                      true};
    all.push_back(
        structure::matched_tensors(structures.front(), each, names, effective_source(where)));
    structure::check_constants(structures.front(), each, names, effective_source(where));
  }
  std::vector<Tensor> stacked = internal::stack_each(all, effective_source(where));
  return structure::with_tensors(structures.front(), stacked);
}

/// Extracts structure number `i` from the result of stack_structures.
template <class T>
T slice_structure(const T& stacked, std::int64_t i,
                  SourceLocation where = SourceLocation::current()) {
  return structure::with_tensors(
      stacked, internal::slice_each(structure::tensors(stacked), i, effective_source(where)));
}

}  // namespace meshard

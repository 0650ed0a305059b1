// jit: traces a function once per signature, compiles it, and runs the compiled program from then
// on.
#pragma once
#include <array>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/trace/jit_cache.h"

namespace meshard {

namespace internal {

template <class... T>
inline constexpr char kTypeTag = 0;

/// The type that f receives for an argument of type T.
template <class T>
using Traced = std::conditional_t<std::is_arithmetic_v<T>, Tensor, T>;

/// The argument with the next parameters in place of its tensors. Advances `next`.
template <class T>
Traced<T> replaced(const T& argument, std::span<const Tensor> parameters, std::size_t& next) {
  if constexpr (std::is_arithmetic_v<T>) {
    return parameters[next++];
  } else {
    std::size_t count = structure::tensors(argument).size();
    next += count;
    return structure::with_tensors(argument, parameters.subspan(next - count, count));
  }
}

template <class T>
std::size_t count_leaves(const T& argument) {
  if constexpr (std::is_arithmetic_v<T>)
    return 1;
  else
    return structure::tensors(argument).size();
}

/// Appends the names of an argument's tensors: `argument 0.w`.
template <class T>
void append_paths(const T& argument, std::size_t position, std::vector<std::string>& paths) {
  structure::for_each(
      argument,
      [&](const auto& leaf, const std::string& path) {
        using Plain = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (structure::Leaf<Plain> || std::is_arithmetic_v<T>) paths.push_back(path);
      },
      cat("argument ", position));
}

/// Appends the names of an argument's static values.
template <class T>
void append_static_paths(const T& argument, std::size_t position, std::vector<std::string>& paths) {
  if constexpr (!std::is_arithmetic_v<T>)
    structure::for_each(
        argument,
        [&](const auto& leaf, const std::string& path) {
          if constexpr (!structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
            paths.push_back(path);
        },
        cat("argument ", position));
}

/// The type that stores a static value of type T. A pointer to characters is stored as its text.
template <class T>
using Kept = std::conditional_t<std::is_convertible_v<const T&, std::string_view>, std::string, T>;

/// The operations on static values of type T. Floating-point numbers compare by value, but 0.0 and
/// -0.0 differ, because a program may distinguish them, and all NaNs are equal.
template <class T>
inline constexpr StaticKind kStaticKind{
    .equal = [](const void* kept, const void* given) -> bool {
      const auto& one = *static_cast<const Kept<T>*>(kept);
      const auto& other = *static_cast<const T*>(given);
      if constexpr (std::is_floating_point_v<T>)
        // Not std::signbit: <cmath> is 10,000 lines.
        return one == other ? __builtin_signbit(one) == __builtin_signbit(other)
                            : one != one && other != other;
      else
        return one == other;
    },
    .keep = [](const void* value) -> std::shared_ptr<const void> {
      return std::make_shared<const Kept<T>>(*static_cast<const T*>(value));
    },
    .text = [](const void* value) -> std::string { return cat(*static_cast<const T*>(value)); },
    .hash = [](const void* value) -> std::size_t {
      const T& given = *static_cast<const T*>(value);
      if constexpr (std::is_convertible_v<const T&, std::string_view>)
        return std::hash<std::string_view>()(given);
      else if constexpr (std::is_arithmetic_v<T>)
        return given == given ? std::hash<T>()(given) : 1;  // all NaNs are equal
      else
        return 0;  // equal() tells them apart
    },
};

/// The static value of a nested number or of a Static.
template <class T>
StaticValue static_value(const T& value) {
  return {&value, &kStaticKind<T>};
}
template <class T>
StaticValue static_value(const Static<T>& value) {
  return static_value(value.value);
}

}  // namespace internal

/// A jitted function, called like the original function. Copies share the compiled programs. It may
/// be called from several threads.
template <class F>
class Jit {
 public:
  Jit(F f, JitOptions options, SourceLocation where)
      : function_(std::make_shared<const F>(std::move(f))),
        cache_(std::make_shared<internal::JitCache>(std::move(options), where)) {}

  /// Runs the program for these arguments, tracing and compiling it first if their signature is
  /// new. Inside another trace, inside a function that is being differentiated, and inside a
  /// function passed to manual(), the function is recorded in place.
  ///
  /// Tensors and top-level numbers are traced; Static arguments and numbers inside structures are
  /// part of the signature: another value means another program. Tensors that f captures are hidden
  /// arguments with the values that they had during tracing. Everything else that f captures or
  /// reads, such as C++ variables, also keeps its value from tracing.
  /// @error errors of f, the compiler or the plugin; invalid argument for a donated or undefined
  /// tensor, and for a number that its dtype (i32, f32) cannot hold.
  template <class... Arguments>
  auto operator()(const Arguments&... arguments) const {
    static_assert(
        std::is_invocable_v<const F&, const internal::Traced<Arguments>&...>,
        "the function cannot be called with these arguments; note that jit passes numbers as "
        "Tensor: declare the parameter as Tensor, or pass Static{number}");
    using Result = std::invoke_result_t<const F&, const internal::Traced<Arguments>&...>;
    static_assert(!std::is_void_v<Result>,
                  "the function given to jit returns nothing: return the tensors that it computes, "
                  "since nothing else leaves a compiled program");
    if constexpr (!std::is_void_v<Result>)
      return run<std::remove_cvref_t<Result>>(std::index_sequence_for<Arguments...>(),
                                              arguments...);
  }

  JitStats stats() const { return cache_->stats(); }
  const JitOptions& options() const { return cache_->options(); }
  /// The compiled programs, oldest first: for explain().
  std::vector<std::shared_ptr<CompiledProgram>> programs() const { return cache_->programs(); }

 private:
  // A compiled program would be a constant to the derivative, and does not accept local values.
  static bool recorded_in_place() {
    return only_recording() || internal::recorder().manual != nullptr;
  }

  template <class Result, std::size_t... I, class... Arguments>
  Result run(std::index_sequence<I...>, const Arguments&... arguments) const {
    if (recorded_in_place()) return Result((*function_)(in_place(arguments, I)...));

    [[maybe_unused]] std::array<Tensor, sizeof...(Arguments)> numbers;
    internal::JitCall call;
    call.types = &internal::kTypeTag<Arguments...>;
    (collect(arguments, numbers[I], call, I), ...);
    compute_pending(call);
    std::shared_ptr<const internal::JitEntry> entry = cache_->find(call);
    if (!entry) entry = trace<Result>(call, arguments...);

    InlineVector<Tensor, 8> results(entry->num_results);
    entry->program->run(std::span<const Tensor* const>(call.tensors.data(), call.tensors.size()),
                        std::span<Tensor>(results.data(), results.size()), cache_->where());
    return structure::with_tensors(*static_cast<const Result*>(entry->prototype.get()), results);
  }

  template <class T>
  internal::Traced<T> in_place(const T& argument, [[maybe_unused]] std::size_t position) const {
    if constexpr (std::is_arithmetic_v<T>)
      return internal::number_argument(Scalar(argument), position, cache_->where());
    else
      return argument;
  }

  template <class T>
  void collect(const T& argument, [[maybe_unused]] Tensor& number, internal::JitCall& call,
               std::size_t position) const {
    if constexpr (std::is_arithmetic_v<T>) {
      number = internal::number_argument(Scalar(argument), position, cache_->where());
      call.tensors.push_back(&number);
    } else {
      structure::for_each_leaf(argument, [&](const auto& leaf) {
        if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>) {
          if (!leaf.defined()) [[unlikely]]
            fail_undefined(argument, position);
          call.tensors.push_back(&leaf);
        } else {
          call.statics.push_back(internal::static_value(leaf));
        }
      });
      structure::append_form(argument, call.form);
    }
  }

  template <class T>
  [[noreturn]] void fail_undefined(const T& argument, std::size_t position) const {
    std::string missing;
    structure::for_each(
        argument,
        [&](const auto& leaf, const std::string& path) {
          if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
            if (missing.empty() && !leaf.defined()) missing = path;
        },
        cat("argument ", position));
    throw_invalid(
        cache_->where(), "[jit] ", missing,
        " of a call of the function jitted here has no value: it was default-constructed or moved "
        "from");
  }

  void compute_pending(const internal::JitCall& call) const {
    InlineVector<Value, 4> pending;
    for (const Tensor* tensor : call.tensors)
      if (!tensor->value().storage()) pending.push_back(tensor->value());
    if (!pending.empty())
      evaluator(cache_->where())
          .evaluate(std::span<const Value>(pending.data(), pending.size()), cache_->where());
  }

  template <class Result, class... Arguments>
  std::shared_ptr<const internal::JitEntry> trace(const internal::JitCall& call,
                                                  const Arguments&... arguments) const {
    internal::JitPaths paths;
    [[maybe_unused]] std::size_t position = 0;
    ((internal::append_paths(arguments, position, paths.tensors),
      internal::append_static_paths(arguments, position, paths.statics), ++position),
     ...);
    auto tracer = [&]([[maybe_unused]] std::span<const Tensor> parameters,
                      internal::JitEntry& entry) {
      [[maybe_unused]] std::size_t next = 0;
      // Braces evaluate the elements from left to right.
      std::tuple<internal::Traced<Arguments>...> given{
          internal::replaced(arguments, parameters, next)...};
      Result result = std::apply(*function_, given);
      std::vector<Tensor> tensors = structure::tensors(result);
      entry.prototype = std::make_shared<const Result>(
          structure::with_tensors(std::move(result), std::vector<Tensor>(tensors.size())));
      return tensors;
    };
    return cache_->find_or_trace(call, {internal::count_leaves(arguments)...}, paths, tracer);
  }

  std::shared_ptr<const F> function_;
  std::shared_ptr<internal::JitCache> cache_;
};

/// The jitted form of `f`. See Jit.
template <class F>
Jit<F> jit(F f, JitOptions options = {}, SourceLocation where = SourceLocation::current()) {
  return Jit<F>(std::move(f), std::move(options), where);
}

}  // namespace meshard

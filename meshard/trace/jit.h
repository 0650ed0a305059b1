// jit: traces a function once per signature, compiles it, and runs the compiled program from then
// on.
#pragma once
#include <array>
#include <memory>
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

/// A C++ number given as an argument is traced: it becomes a tensor of rank 0, of the default dtype
/// of its kind.
template <class T>
Tensor number_argument(T number, SourceLocation where) {
  if constexpr (std::same_as<T, bool>)
    return from_host(HostArray::scalar(number), where);
  else if constexpr (std::is_floating_point_v<T>)
    return from_host(HostArray::scalar(static_cast<float>(number)), where);
  else
    return from_host(HostArray::scalar(static_cast<std::int32_t>(number)), where);
}

/// What f sees for an argument of type T.
template <class T>
using Traced = std::conditional_t<std::is_arithmetic_v<T>, Tensor, T>;

/// The argument with the next parameters in place of its tensors; `next` counts on.
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

/// The names of an argument's tensors: `argument 0.w`.
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

template <class T>
void append_static(std::string& out, const T& value) {
  if constexpr (std::is_arithmetic_v<T>)
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  else
    append(out, cat(value.value, ";"));
}

}  // namespace internal

/// A handle on a jitted function: call it as the function. Copies share the compiled programs; may
/// be called from several threads.
template <class F>
class Jit {
 public:
  Jit(F f, JitOptions options, SourceLocation where)
      : function_(std::make_shared<const F>(std::move(f))),
        cache_(std::make_shared<internal::JitCache>(std::move(options), where)) {}

  /// Runs the program for these arguments, tracing and compiling it first if their signature is
  /// new. Inside another trace, inside a function that is being differentiated, and inside one
  /// given to manual(), the function is recorded in place.
  ///
  /// Tensors and top-level numbers are traced; Static arguments and numbers inside structures are
  /// part of the signature. Tensors that f captures are hidden arguments: their values are those at
  /// the time of tracing.
  /// @error what f, the compiler or the plugin meets; invalid argument for a donated or undefined
  /// tensor.
  template <class... Arguments>
  auto operator()(const Arguments&... arguments) const {
    static_assert(std::is_invocable_v<const F&, const internal::Traced<Arguments>&...>,
                  "the function cannot be called with these arguments; note that numbers arrive as "
                  "Tensor: take a Tensor, or pass Static{number}");
    using Result =
        std::remove_cvref_t<std::invoke_result_t<const F&, const internal::Traced<Arguments>&...>>;
    if (recorded_in_place()) return Result((*function_)(in_place(arguments)...));

    [[maybe_unused]] std::array<Tensor, sizeof...(Arguments)> numbers;
    internal::JitCall call;
    call.types = &internal::kTypeTag<Arguments...>;
    [[maybe_unused]] std::size_t position = 0;
    (collect(arguments, numbers[position], call, position), ...);
    compute_pending(call);
    const internal::JitEntry* entry = cache_->find(call);
    if (!entry) entry = &trace<Result>(call, arguments...);

    InlineVector<Tensor, 8> results(entry->num_results);
    entry->program->run(std::span<const Tensor* const>(call.tensors.data(), call.tensors.size()),
                        std::span<Tensor>(results.data(), results.size()), cache_->where());
    return structure::with_tensors(*static_cast<const Result*>(entry->prototype.get()), results);
  }

  JitStats stats() const { return cache_->stats(); }
  const JitOptions& options() const { return cache_->options(); }
  /// The compiled programs, oldest first: for explain().
  std::vector<std::shared_ptr<CompiledProgram>> programs() const { return cache_->programs(); }

 private:
  // A compiled program would be a constant to the derivative, and takes no local values.
  static bool recorded_in_place() { return only_recording() || recorder().manual != nullptr; }

  template <class T>
  static internal::Traced<T> in_place(const T& argument) {
    if constexpr (std::is_arithmetic_v<T>)
      return internal::number_argument(argument, {});
    else
      return argument;
  }

  template <class T>
  void collect(const T& argument, Tensor& number, internal::JitCall& call,
               std::size_t& position) const {
    if constexpr (std::is_arithmetic_v<T>) {
      number = internal::number_argument(argument, {});
      call.tensors.push_back(&number);
    } else {
      structure::for_each_leaf(argument, [&](const auto& leaf) {
        if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>) {
          if (!leaf.defined()) [[unlikely]]
            fail_undefined(argument, position);
          call.tensors.push_back(&leaf);
        } else {
          internal::append_static(call.statics, leaf);
        }
      });
      structure::append_form(argument, call.form);
    }
    ++position;
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
        " of a call of the function jitted here has no value: it was default-made or moved "
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
  const internal::JitEntry& trace(const internal::JitCall& call,
                                  const Arguments&... arguments) const {
    auto path = [&](std::size_t i) {
      std::vector<std::string> paths;
      std::size_t position = 0;
      (internal::append_paths(arguments, position++, paths), ...);
      return i < paths.size() ? paths[i] : cat("tensor ", i);
    };
    auto tracer = [&]([[maybe_unused]] std::span<const Tensor> parameters,
                      internal::JitEntry& entry) {
      [[maybe_unused]] std::size_t next = 0;
      // Braces, so that parameters are handed out from the left.
      std::tuple<internal::Traced<Arguments>...> given{
          internal::replaced(arguments, parameters, next)...};
      Result result = std::apply(*function_, given);
      std::vector<Tensor> tensors = structure::tensors(result);
      entry.prototype = std::make_shared<const Result>(
          structure::with_tensors(std::move(result), std::vector<Tensor>(tensors.size())));
      return tensors;
    };
    return cache_->find_or_trace(call, {internal::count_leaves(arguments)...}, path, tracer);
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

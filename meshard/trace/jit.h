// jit: traces a function once per signature, compiles it, and runs the compiled program from then
// on.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/shared_value.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/trace/jit_call.h"
#include "meshard/trace/trace_function.h"

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
    return number_inside(Scalar(argument), parameters[next++]);
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
      return shared_value<Kept<T>>(*static_cast<const T*>(value));
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

/// The path of the first undefined tensor of an argument.
template <class T>
std::string undefined_path(const T& argument, std::size_t position) {
  std::string missing;
  structure::for_each(
      argument,
      [&](const auto& leaf, const std::string& path) {
        if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
          if (missing.empty() && !leaf.defined()) missing = path;
      },
      cat("argument ", position));
  return missing;
}

/// Appends an argument to a call. A C++ number becomes a tensor, which `number` holds.
template <class T>
void collect(const T& argument, [[maybe_unused]] Tensor& number, std::size_t position,
             SourceLocation where, JitCall& call) {
  if constexpr (std::is_arithmetic_v<T>) {
    number = number_argument(Scalar(argument), position, where);
    call.tensors.push_back(&number);
    call.form.push_back(is_default_number(Scalar(argument)));
  } else {
    structure::for_each_leaf(argument, [&](const auto& leaf) {
      if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>) {
        if (!leaf.defined()) [[unlikely]]
          fail_undefined_argument(undefined_path(argument, position), where);
        call.tensors.push_back(&leaf);
      } else {
        call.statics.push_back(static_value(leaf));
      }
    });
    structure::append_form(argument, call.form);
  }
}

/// The argument that a function recorded in place receives.
template <class T>
Traced<T> in_place(const T& argument, [[maybe_unused]] std::size_t position,
                   [[maybe_unused]] SourceLocation where) {
  if constexpr (std::is_arithmetic_v<T>)
    return number_inside(Scalar(argument), number_argument(Scalar(argument), position, where));
  else
    return argument;
}

/// Describes the arguments of a call.
template <class... Arguments, std::size_t... I>
void describe_arguments(JitPaths& paths, std::index_sequence<I...>, const Arguments&... arguments) {
  ((append_paths(arguments, I, paths.tensors), append_static_paths(arguments, I, paths.statics)),
   ...);
  paths.leaves = {count_leaves(arguments)...};
}

/// Calls f with `parameters` in place of the arguments' tensors. Returns the tensors of its result,
/// and sets the prototype of the result.
template <class Result, class F, std::size_t... I, class... Arguments>
std::vector<Tensor> traced_call(const F& f, [[maybe_unused]] std::span<const Tensor> parameters,
                                std::shared_ptr<const void>& prototype, std::index_sequence<I...>,
                                const Arguments&... arguments) {
  [[maybe_unused]] std::size_t next = 0;
  // Braces evaluate the elements from left to right.
  const std::tuple<Traced<Arguments>...> given{replaced(arguments, parameters, next)...};
  Result result = f(std::get<I>(given)...);
  std::vector<Tensor> tensors = structure::tensors(result);
  prototype = shared_value<Result>(
      structure::with_tensors(std::move(result), std::vector<Tensor>(tensors.size())));
  return tensors;
}

}  // namespace internal

/// A jitted function, called like the original function. Copies share the compiled programs. It may
/// be called from several threads.
template <class F>
class Jit {
 public:
  Jit(F f, JitOptions options, SourceLocation where)
      : function_(shared_value(std::move(f))), programs_(std::move(options), where) {}

  /// Runs the program for these arguments, tracing and compiling it first if their signature is
  /// new. Inside another trace, inside a function that is being differentiated, and inside a
  /// function passed to manual(), the function is recorded in place.
  ///
  /// Tensors and top-level numbers are traced; a number is weakly typed inside f, as a C++ number
  /// is outside: beside a tensor it takes the tensor's dtype, with its full precision. Static
  /// arguments and numbers inside structures are part of the signature: another value means another
  /// program. Tensors that f captures are hidden arguments with the values that they had during
  /// tracing. Everything else that f captures or reads, such as C++ variables, also keeps its value
  /// from tracing.
  /// @error errors of f, the compiler or the plugin; invalid argument for a donated or undefined
  /// tensor.
  template <class... Arguments>
  auto operator()(const Arguments&... arguments) const {
    constexpr bool kAccepts = requires(const F& f) {
      f(std::declval<const internal::Traced<Arguments>&>()...);
    };
    static_assert(
        kAccepts,
        "the function cannot be called with these arguments; note that jit passes numbers as "
        "Tensor: declare the parameter as Tensor, or pass Static{number}");
    if constexpr (kAccepts) {
      using Result = decltype(function()(std::declval<const internal::Traced<Arguments>&>()...));
      static_assert(!std::is_void_v<Result>,
                    "the function given to jit returns nothing: return the tensors that it "
                    "computes, since nothing else leaves a compiled program");
      if constexpr (!std::is_void_v<Result>)
        return run<std::remove_cvref_t<Result>>(std::index_sequence_for<Arguments...>(),
                                                arguments...);
    }
  }

  JitStats stats() const { return programs_.stats(); }
  const JitOptions& options() const { return programs_.options(); }
  /// The compiled programs, oldest first: for explain().
  std::vector<std::shared_ptr<CompiledProgram>> programs() const { return programs_.programs(); }

 private:
  const F& function() const { return *static_cast<const F*>(function_.get()); }

  template <class Result, std::size_t... I, class... Arguments>
  Result run(std::index_sequence<I...> positions, const Arguments&... arguments) const {
    [[maybe_unused]] const SourceLocation where = programs_.where();
    if (internal::recorded_in_place())
      return Result(function()(internal::in_place(arguments, I, where)...));

    [[maybe_unused]] std::array<Tensor, sizeof...(Arguments)> numbers;
    internal::JitCall call;
    call.types = &internal::kTypeTag<Arguments...>;
    (internal::collect(arguments, numbers[I], I, where, call), ...);
    auto describe = [&](internal::JitPaths& paths) {
      internal::describe_arguments(paths, positions, arguments...);
    };
    auto trace = [&](std::span<const Tensor> parameters, std::shared_ptr<const void>& prototype) {
      return internal::traced_call<Result>(function(), parameters, prototype, positions,
                                           arguments...);
    };
    internal::JitResults results = programs_.run(call, {describe, trace});
    Result result = *static_cast<const Result*>(results.prototype.get());
    structure::move_into(result, std::span(results.tensors.data(), results.tensors.size()));
    return result;
  }

  std::shared_ptr<const void> function_;  // an F
  internal::JitPrograms programs_;
};

/// The jitted form of `f`. See Jit.
template <class F>
Jit<F> jit(F f, JitOptions options = {}, SourceLocation where = SourceLocation::current()) {
  return Jit<F>(std::move(f), std::move(options), where);
}

}  // namespace meshard

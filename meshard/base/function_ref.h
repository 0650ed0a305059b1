// References to callables, as parameters.
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

namespace meshard {

template <class Signature>
class FunctionRef;

/// A parameter type for a function that is called before the callee returns. Unlike std::function
/// it owns nothing, and costs little to compile for each lambda. Valid while the callable is.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> && std::is_class_v<F>)
      FunctionRef(const F& f)  // NOLINT: a parameter
      : callee_{.object = &f}, call_([](Callee callee, Arguments... arguments) -> Result {
          return (*static_cast<const F*>(callee.object))(std::forward<Arguments>(arguments)...);
        }) {}
  /// @pre not null
  FunctionRef(Result (*f)(Arguments...))  // NOLINT: a parameter
      : callee_{.function = f}, call_([](Callee callee, Arguments... arguments) -> Result {
          return callee.function(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(callee_, std::forward<Arguments>(arguments)...);
  }

 private:
  union Callee {
    const void* object;
    Result (*function)(Arguments...);
  };
  Callee callee_;
  Result (*call_)(Callee, Arguments...);
};

}  // namespace meshard

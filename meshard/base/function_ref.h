// References to callables, as parameters.
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

namespace meshard {

template <class Signature>
class FunctionRef;

/// A parameter type for a function that is called before the callee returns. Unlike std::function it
/// owns nothing, and costs little to compile for each lambda. Valid while the callable is.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(
      const F& f)  // NOLINT: a parameter
      : object_(&f), call_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const F*>(object))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  const void* object_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace meshard

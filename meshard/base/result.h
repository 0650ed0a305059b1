// Result<T>: a value or an Error, for operations that can fail for reasons outside the program.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "meshard/base/error.h"

namespace meshard {

/// A value of type T, or the Error that prevented it. The interface follows std::expected.
///
/// `value()` throws the Error; it is the only bridge from results to exceptions, and caught() the
/// one back. A service that must not throw checks `ok()` first.
template <class T>
class [[nodiscard]] Result {
  static_assert(!std::is_reference_v<T>);

 public:
  using value_type = T;

  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// @error throws the held Error if there is no value, with the caller's line unless it has one.
  T& value(SourceLocation where = SourceLocation::current()) & {
    return check(where), std::get<0>(state_);
  }
  const T& value(SourceLocation where = SourceLocation::current()) const& {
    return check(where), std::get<0>(state_);
  }
  T value(SourceLocation where = SourceLocation::current()) && {
    return check(where), std::get<0>(std::move(state_));
  }

  /// @pre ok()
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  /// @pre !ok()
  const Error& error() const { return std::get<1>(state_); }

  template <class U>
  T value_or(U&& other) const& {
    return ok() ? std::get<0>(state_) : static_cast<T>(std::forward<U>(other));
  }

 private:
  void check(const SourceLocation& where) const {
    if (!ok()) throw std::get<1>(state_).at(where);
  }
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  /// @error throws the held Error, with the caller's line unless it has one.
  void value(SourceLocation where = SourceLocation::current()) const {
    if (error_) throw error_->at(where);
  }
  /// @pre !ok()
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

namespace internal {
template <class T>
struct ResultOf {
  using type = Result<T>;
};
template <class T>
struct ResultOf<Result<T>> {
  using type = Result<T>;
};
}  // namespace internal

/// What `f()` returns, a value or a Result; an Error that it throws becomes a failed Result. The
/// bridge from exceptions to results, as value() is the one back.
template <class F>
auto caught(const F& f) -> typename internal::ResultOf<decltype(f())>::type {
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      return {};
    } else {
      return f();
    }
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace meshard

#define MESHARD_CONCAT_INNER(a, b) a##b
#define MESHARD_CONCAT(a, b) MESHARD_CONCAT_INNER(a, b)

/// Returns the Error from the enclosing function if the expression is a failed Result.
#define MESHARD_RETURN_IF_ERROR(expression)                                                      \
  do {                                                                                           \
    if (auto meshard_result = (expression); !meshard_result.ok()) return meshard_result.error(); \
  } while (false)

/// Assigns the value of a Result, or returns its Error from the enclosing function:
/// `MESHARD_ASSIGN_OR_RETURN(auto client, make_client());`
#define MESHARD_ASSIGN_OR_RETURN(declaration, expression)        \
  auto MESHARD_CONCAT(meshard_result_, __LINE__) = (expression); \
  if (!MESHARD_CONCAT(meshard_result_, __LINE__).ok())           \
    return MESHARD_CONCAT(meshard_result_, __LINE__).error();    \
  declaration = *std::move(MESHARD_CONCAT(meshard_result_, __LINE__))

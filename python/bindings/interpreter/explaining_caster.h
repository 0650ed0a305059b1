// A base of type casters for values that Python writes as lists and tuples.
#pragma once
#include <nanobind/nanobind.h>

namespace nanobind::detail {

/// The value that a caster holds at first. Specialized for types without a default constructor.
template <class Value>
Value empty_value() {
  return Value{};
}

/// A caster that explains why a list or a tuple is not such a value, by an error of meshard instead
/// of "incompatible function arguments". Within another caster (optional, vector) it is the latter.
/// Its from_python sets `wrong` and `fail`, and returns true, for what only looks like a value. One
/// that never does is an ordinary caster of a value.
template <class Value>
struct ExplainingCaster {
  template <class T>
  using Cast = movable_cast_t<T>;
  template <class T>
  bool can_cast() const noexcept {
    return !wrong;
  }
  operator Value*() { return &get(); }
  operator Value&() { return get(); }
  operator Value&&() { return static_cast<Value&&>(get()); }
  Value& get() {
    if (wrong) fail(wrong);
    return value;
  }
  Value value = empty_value<Value>();
  PyObject* wrong = nullptr;       // borrowed: the arguments of the call hold it
  void (*fail)(handle) = nullptr;  // throws
};

}  // namespace nanobind::detail

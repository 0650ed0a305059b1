// Conversions of axes and partition specs. Every file that binds a function with one of these
// includes this header.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/mesh/axis_kind.h"
#include "meshard/mesh/axis_names.h"
#include "meshard/mesh/axis_ref.h"
#include "meshard/ops/collective_axes.h"
#include "meshard/sharding/partition_spec.h"
#include "python/bindings/casters.h"

namespace meshard::python {

/// An axis: its name, its position, or an AxisRef. False if the object is something else.
bool load_axis(PyObject* object, AxisList& axes) noexcept;
/// An axis, or a sequence of them.
bool load_axes(PyObject* object, AxisList& axes) noexcept;
/// What splits one dimension: None, an axis, UNCONSTRAINED, or a sequence of axes that may end with
/// UNCONSTRAINED.
bool load_dimension(PyObject* object, DimensionSpec& dimension) noexcept;
/// A sequence of the above. False if an element is something else.
bool load_spec(PyObject* sequence, PartitionSpec& spec) noexcept;

/// `"x"`, `0`, or an AxisRef if it is a sub-axis.
nanobind::object axis_object(const AxisRef& axis);
/// A tuple of the above.
nanobind::object axes_object(const AxisList& axes);
/// None, `"x"`, `("x", "y")`, UNCONSTRAINED, or `("x", UNCONSTRAINED)`.
nanobind::object dimension_object(const DimensionSpec& dimension);

/// The one UNCONSTRAINED.
nanobind::object unconstrained_object();

/// The text of one of these as Python writes it: `'x'`, `AxisRef('x', 2, 4)`, `('x', 'y')`.
std::string axis_code(const AxisRef& axis);
std::string axes_code(const AxisList& axes);
std::string dimension_code(const DimensionSpec& dimension);
std::string spec_code(const PartitionSpec& spec);

/// @error invalid argument: neither `auto` nor `explicit`.
AxisKind axis_kind_named(std::string_view name);

/// @error invalid argument: the object, which should be what the name says, is not.
[[noreturn]] void throw_not_axes(nanobind::handle object);
[[noreturn]] void throw_not_spec(nanobind::handle object);

}  // namespace meshard::python

namespace nanobind::detail {

/// A caster for values that a list or a tuple with wrong elements gives an error of its own, not
/// "incompatible function arguments". Within another caster (optional, vector) it is the latter.
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
  Value value{};
  PyObject* wrong = nullptr;  // borrowed: the arguments of the call hold it
  void (*fail)(handle) = nullptr;
};

template <>
struct type_caster<meshard::AxisList> : ExplainingCaster<meshard::AxisList> {
  static constexpr auto Name =
      const_name("str | int | AxisRef | collections.abc.Sequence[str | int | AxisRef]");
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value.clear();
    const bool loaded = meshard::python::load_axes(source.ptr(), value);
    wrong = loaded ? nullptr : source.ptr();
    fail = meshard::python::throw_not_axes;
    return loaded || PyTuple_Check(source.ptr()) || PyList_Check(source.ptr()) ||
           PyLong_Check(source.ptr());
  }
  static handle from_cpp(const meshard::AxisList& axes, rv_policy, cleanup_list*) noexcept {
    return meshard::python::axes_object(axes).release();
  }
};

template <>
struct type_caster<meshard::CollectiveAxes> {
  static constexpr auto Name =
      const_name("str | AxisRef | collections.abc.Sequence[str | AxisRef]");
  template <class T>
  using Cast = movable_cast_t<T>;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    meshard::AxisList axes;
    if (!meshard::python::load_axes(source.ptr(), axes)) return false;
    value = meshard::CollectiveAxes(std::move(axes));
    return true;
  }
  explicit operator meshard::CollectiveAxes&() { return value; }
  explicit operator meshard::CollectiveAxes&&() {
    return static_cast<meshard::CollectiveAxes&&>(value);
  }
  meshard::CollectiveAxes value{meshard::AxisList{}};
};

// One name or a sequence of names. Valid during the call.
template <>
struct type_caster<meshard::AxisNames> {
  static constexpr auto Name = const_name("str | collections.abc.Sequence[str]");
  template <class T>
  using Cast = movable_cast_t<T>;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    if (PyUnicode_Check(source.ptr())) {
      make_caster<std::string> one;
      if (!one.from_python(source, flags, cleanup)) return false;
      names = {std::move(one.value)};
    } else {
      make_caster<std::vector<std::string>> all;
      if (!all.from_python(source, flags, cleanup)) return false;
      names = std::move(all.value);
    }
    value = meshard::AxisNames(names);
    return true;
  }
  explicit operator meshard::AxisNames&() { return value; }
  explicit operator meshard::AxisNames&&() { return static_cast<meshard::AxisNames&&>(value); }
  std::vector<std::string> names;
  meshard::AxisNames value{names};
};

// A PartitionSpec, or a tuple or a list of what splits each dimension.
template <>
struct type_caster<meshard::PartitionSpec> : type_caster_base<meshard::PartitionSpec> {
  using Spec = meshard::PartitionSpec;
  using Base = type_caster_base<Spec>;
  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    wrong = nullptr;
    made.reset();
    if (Base::from_python(source, flags, cleanup)) return true;
    if (!PyTuple_Check(source.ptr()) && !PyList_Check(source.ptr())) return false;
    if (!meshard::python::load_spec(source.ptr(), made.emplace())) wrong = source.ptr();
    return true;
  }
  template <class T>
  bool can_cast() const noexcept {
    return !wrong && (made || Base::can_cast<T>());
  }
  operator Spec*() {
    if (wrong) meshard::python::throw_not_spec(wrong);
    return made ? &*made : static_cast<Spec*>(static_cast<Base&>(*this));
  }
  operator Spec&() {
    if (!made) return static_cast<Base&>(*this);
    return *static_cast<Spec*>(*this);
  }
  operator Spec&&() { return static_cast<Spec&&>(static_cast<Spec&>(*this)); }

 private:
  std::optional<Spec> made;
  PyObject* wrong = nullptr;
};

}  // namespace nanobind::detail

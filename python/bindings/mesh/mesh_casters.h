// Conversions of axes and partition specs. Every file that binds a function with one of these
// includes this header.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/mesh/axis_names.h"
#include "meshard/mesh/axis_ref.h"
#include "meshard/ops/collectives.h"
#include "meshard/sharding/partition_spec.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/explaining_caster.h"

namespace meshard::python {

/// An axis: its name, its position, or an AxisRef. False if the object is something else.
bool load_axis(PyObject* object, AxisList& axes) noexcept;
/// An axis, or a sequence of them.
bool load_axes(PyObject* object, AxisList& axes) noexcept;
/// A name, or a list or tuple of names.
bool load_names(PyObject* object, std::vector<std::string>& names) noexcept;
/// What splits one dimension: None, an axis, UNCONSTRAINED, or a sequence of axes that may end with
/// UNCONSTRAINED.
bool load_dimension(PyObject* object, DimensionSpec& dimension) noexcept;
/// A sequence of the above. False if an element is something else.
bool load_spec(PyObject* sequence, PartitionSpec& spec) noexcept;

/// "sum", "max" or "min".
std::optional<UnreducedKind> unreduced_kind(std::string_view text) noexcept;

/// True for a jax.sharding.PartitionSpec.
bool is_spec_of_jax(PyObject* object) noexcept;
/// What it says: the spec, the unreduced axes, and how they are reduced.
bool load_spec_of_jax(PyObject* object, PartitionSpec& spec, AxisList& unreduced,
                      UnreducedKind& kind) noexcept;

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
[[noreturn]] void throw_not_names(nanobind::handle object);
[[noreturn]] void throw_not_spec(nanobind::handle object);

}  // namespace meshard::python

namespace nanobind::detail {

template <>
struct type_caster<meshard::AxisList> : ExplainingCaster<meshard::AxisList> {
  static constexpr auto Name =
      io_name("str | int | AxisRef | collections.abc.Sequence[str | int | AxisRef]",
              "tuple[str | int | AxisRef, ...]");
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value.clear();
    const bool loaded = meshard::python::load_axes(source.ptr(), value);
    wrong = loaded ? nullptr : source.ptr();
    fail = meshard::python::throw_not_axes;
    return loaded || PyTuple_Check(source.ptr()) || PyList_Check(source.ptr()) ||
           PyLong_Check(source.ptr()) || PyAnySet_Check(source.ptr());
  }
  static handle from_cpp(const meshard::AxisList& axes, rv_policy, cleanup_list*) noexcept {
    return meshard::python::axes_object(axes).release();
  }
};

template <>
inline meshard::CollectiveAxes empty_value<meshard::CollectiveAxes>() {
  return meshard::CollectiveAxes(meshard::AxisList{});
}

template <>
struct type_caster<meshard::CollectiveAxes> : ExplainingCaster<meshard::CollectiveAxes> {
  static constexpr auto Name =
      const_name("str | AxisRef | collections.abc.Sequence[str | AxisRef]");
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    meshard::AxisList axes;
    if (!meshard::python::load_axes(source.ptr(), axes)) return false;
    value = meshard::CollectiveAxes(std::move(axes));
    return true;
  }
};

template <>
inline meshard::AxisNames empty_value<meshard::AxisNames>() {
  return meshard::AxisNames(std::initializer_list<std::string_view>{});
}

// One name or a list or tuple of names. Valid during the call.
template <>
struct type_caster<meshard::AxisNames> : ExplainingCaster<meshard::AxisNames> {
  static constexpr auto Name = const_name("str | collections.abc.Sequence[str]");
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    const bool loaded = meshard::python::load_names(source.ptr(), names);
    wrong = loaded ? nullptr : source.ptr();
    fail = meshard::python::throw_not_names;
    value = meshard::AxisNames(names);
    return loaded || PyTuple_Check(source.ptr()) || PyList_Check(source.ptr()) ||
           PyLong_Check(source.ptr()) || PyAnySet_Check(source.ptr());
  }
  std::vector<std::string> names;
};

// A PartitionSpec, or a tuple or a list of what splits each dimension.
template <>
struct type_caster<meshard::PartitionSpec> : type_caster_base<meshard::PartitionSpec> {
  using Spec = meshard::PartitionSpec;
  using Base = type_caster_base<Spec>;
  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    wrong_ = nullptr;
    made_.reset();
    if (Base::from_python(source, flags, cleanup)) return true;
    using namespace meshard::python;
    const bool is_list = PyTuple_Check(source.ptr()) || PyList_Check(source.ptr());
    meshard::AxisList unreduced;  // which a spec of ours cannot say
    meshard::UnreducedKind kind;
    bool loaded = false;
    if (is_list) {
      loaded = load_spec(source.ptr(), made_.emplace());
    } else if (is_spec_of_jax(source.ptr())) {
      loaded =
          load_spec_of_jax(source.ptr(), made_.emplace(), unreduced, kind) && unreduced.empty();
    } else if (!PyUnicode_Check(source.ptr())) {
      return false;
    }
    if (!loaded) wrong_ = source.ptr();
    return true;
  }
  template <class T>
  bool can_cast() const noexcept {
    return !wrong_ && (made_ || Base::can_cast<T>());
  }
  operator Spec*() {
    if (wrong_) meshard::python::throw_not_spec(wrong_);
    return made_ ? &*made_ : static_cast<Spec*>(static_cast<Base&>(*this));
  }
  operator Spec&() {
    if (!made_ && !wrong_) return static_cast<Base&>(*this);
    return *static_cast<Spec*>(*this);
  }
  operator Spec&&() { return static_cast<Spec&&>(static_cast<Spec&>(*this)); }

 private:
  std::optional<Spec> made_;
  PyObject* wrong_ = nullptr;
};

}  // namespace nanobind::detail

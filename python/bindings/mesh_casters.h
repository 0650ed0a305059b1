// Conversions of axes and partition specs.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "meshard/mesh/axis_ref.h"
#include "meshard/ops/collective_axes.h"
#include "meshard/sharding/partition_spec.h"

namespace meshard::python {

/// An axis: its name, its position, or an AxisRef. False if the object is something else.
bool load_axis(PyObject* object, AxisList& axes) noexcept;
/// An axis, or a sequence of them.
bool load_axes(PyObject* object, AxisList& axes) noexcept;

}  // namespace meshard::python

template <>
struct nanobind::detail::type_caster<meshard::CollectiveAxes> {
  static constexpr auto Name = const_name("str | AxisRef | collections.abc.Sequence[str | AxisRef]");
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

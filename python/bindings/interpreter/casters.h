// Conversions of the small values that ops take.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>

#include "meshard/array/shape.h"
#include "meshard/ops/composite/uneven_parts.h"
#include "meshard/ops/dimension_list.h"
#include "meshard/ops/reshape.h"
#include "python/bindings/interpreter/dtypes.h"
#include "python/bindings/interpreter/explaining_caster.h"

namespace meshard::python {

/// The integer of an object with __index__, but not of a bool. False if it is something else or
/// does not fit; then no Python error is set.
bool load_integer(PyObject* object, std::int64_t& number) noexcept;

/// An integer, or a sequence of them. False if the object is something else.
bool load_dimensions(PyObject* object, Dimensions& dimensions) noexcept;

/// A number (of Python or NumPy), or the name of a reduction: "sum", "prod", "max", "min". None if
/// the object is something else; then no Python error is set.
std::optional<PadValue> load_pad_value(PyObject* object) noexcept;

}  // namespace meshard::python

namespace nanobind::detail {

template <>
struct type_caster<meshard::Dimensions> {
  NB_TYPE_CASTER(meshard::Dimensions,
                 io_name("int | collections.abc.Sequence[int]", "tuple[int, ...]"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    return meshard::python::load_dimensions(source.ptr(), value);
  }
  static handle from_cpp(const meshard::Dimensions& sizes, rv_policy, cleanup_list*) noexcept {
    PyObject* made = PyTuple_New(static_cast<Py_ssize_t>(sizes.size()));
    for (std::size_t i = 0; made && i < sizes.size(); ++i)
      PyTuple_SetItem(made, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
    return made;
  }
};

template <>
struct type_caster<meshard::Shape> {
  NB_TYPE_CASTER(meshard::Shape, io_name("int | collections.abc.Sequence[int]", "tuple[int, ...]"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    meshard::Dimensions sizes;
    if (!meshard::python::load_dimensions(source.ptr(), sizes)) return false;
    for (std::int64_t size : sizes)
      if (size < 0) return false;
    value = meshard::Shape(std::move(sizes));
    return true;
  }
  static handle from_cpp(const meshard::Shape& shape, rv_policy policy,
                         cleanup_list* cleanup) noexcept {
    return type_caster<meshard::Dimensions>::from_cpp(shape.sizes(), policy, cleanup);
  }
};

template <>
struct type_caster<meshard::DimensionList> {
  NB_TYPE_CASTER(meshard::DimensionList, const_name("int | collections.abc.Sequence[int] | None"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    if (source.is_none()) {
      value = {};
      return true;
    }
    meshard::Dimensions dimensions;
    if (!meshard::python::load_dimensions(source.ptr(), dimensions)) return false;
    value = std::move(dimensions);
    return true;
  }
};

template <>
inline meshard::PadValue empty_value<meshard::PadValue>() {
  return meshard::PadValue(0);
}

// A number, or the name of a reduction.
template <>
struct type_caster<meshard::PadValue> : ExplainingCaster<meshard::PadValue> {
  static constexpr auto Name = const_name("bool | int | float | str");
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    std::optional<meshard::PadValue> loaded = meshard::python::load_pad_value(source.ptr());
    if (loaded) value = *loaded;
    return loaded.has_value();
  }
};

template <>
inline meshard::NewShape empty_value<meshard::NewShape>() {
  return meshard::NewShape(meshard::Dimensions{});
}

template <>
struct type_caster<meshard::NewShape> : ExplainingCaster<meshard::NewShape> {
  static constexpr auto Name = const_name("int | collections.abc.Sequence[int]");
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    meshard::Dimensions sizes;
    if (!meshard::python::load_dimensions(source.ptr(), sizes)) return false;
    value = meshard::NewShape(std::move(sizes));
    return true;
  }
};

}  // namespace nanobind::detail

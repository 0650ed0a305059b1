// Conversions of tuples of integers and of tilers. Every file that binds a function with one of
// these includes this header.
#pragma once
#include <nanobind/nanobind.h>

#include "meshard/layout/algebra.h"
#include "meshard/layout/int_tuple.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/explaining_caster.h"

namespace meshard::python {

/// An integer, None for a hole, or a list or tuple of these and of tuples. False if the object is
/// something else, or nested deeper than texts may be.
bool load_int_tuple(PyObject* object, IntTuple& tuple, int depth = 0) noexcept;
/// An integer, or a tuple of integers, of None for a hole, and of tuples.
nanobind::object int_tuple_object(const IntTuple& tuple);
/// None, an integer, a Layout, or a list or tuple of these.
bool load_tiler(PyObject* object, Tiler& tiler, int depth = 0) noexcept;

/// @error invalid argument: the object is neither a tuple of integers nor a tiler.
[[noreturn]] void throw_not_int_tuple(nanobind::handle object);
[[noreturn]] void throw_not_tiler(nanobind::handle object);

}  // namespace meshard::python

namespace nanobind::detail {

template <>
struct type_caster<meshard::IntTuple> : ExplainingCaster<meshard::IntTuple> {
  static constexpr auto Name =
      io_name("int | collections.abc.Sequence[typing.Any]", "int | tuple[typing.Any, ...]");
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    const bool loaded = meshard::python::load_int_tuple(source.ptr(), value);
    wrong = loaded ? nullptr : source.ptr();
    fail = meshard::python::throw_not_int_tuple;
    return loaded || PyTuple_Check(source.ptr()) || PyList_Check(source.ptr());
  }
  static handle from_cpp(const meshard::IntTuple& tuple, rv_policy, cleanup_list*) noexcept {
    return meshard::python::int_tuple_object(tuple).release();
  }
};

template <>
struct type_caster<meshard::Tiler> : ExplainingCaster<meshard::Tiler> {
  static constexpr auto Name =
      const_name("Layout | int | collections.abc.Sequence[typing.Any] | None");
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    const bool loaded = meshard::python::load_tiler(source.ptr(), value);
    wrong = loaded ? nullptr : source.ptr();
    fail = meshard::python::throw_not_tiler;
    return loaded || PyTuple_Check(source.ptr()) || PyList_Check(source.ptr()) ||
           PyLong_Check(source.ptr());
  }
};

}  // namespace nanobind::detail

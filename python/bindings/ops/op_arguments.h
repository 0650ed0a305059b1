// The arguments and results of the ops that op_bindings.py binds.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <deque>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "meshard/core.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/explaining_caster.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/mesh/mesh_casters.h"

namespace meshard::python {

/// The operand as a tensor; a number becomes one of the default dtype of its kind.
Tensor tensor_of(const In& in);

/// An operand that may be missing: None.
struct OptionalOperand {
  Operand operand;
  bool given = false;
  Tensor tensor() const;
};

/// A sequence of operands.
struct Operands {
  std::deque<Operand> all;
  /// Numbers become tensors of their default dtype.
  std::vector<Tensor> tensors() const;
  std::vector<In> ins() const;
};

/// settle_operands() for the operands of one call.
inline void settle(std::initializer_list<const Operand*> operands) {
  InlineVector<Operand*, 6> all;
  for (const Operand* each : operands) all.push_back(const_cast<Operand*>(each));
  settle_operands(std::span<Operand*>(all.data(), all.size()));
}

/// Reads a padding: "valid", "same" or "same_lower" in any case; elements on both sides of all
/// spatial dimensions, or for each of them its elements on both sides or (before, after).
/// @error value error, with the allowed names, for another text
bool load_padding(PyObject* object, WindowPadding& padding);

/// The results of ops, with the types that stubs name.
using TensorList = nanobind::typed<nanobind::list, TensorObject>;
using TensorPair = nanobind::typed<nanobind::tuple, TensorObject, TensorObject>;

TensorList list_of(std::vector<Tensor> tensors);
/// An instance of the named tuple of this name, which is made at its first use.
nanobind::object named_result(const char* name, std::initializer_list<const char*> fields,
                              std::initializer_list<nanobind::object> values);

/// The names of the enumerators in Python.
template <class Enum>
extern const std::vector<std::pair<const char*, Enum>> kEnumerators;

/// Reads an enumerator from its name.
template <class Enum>
struct EnumCaster : nanobind::detail::ExplainingCaster<Enum> {
  bool from_python(nanobind::handle source, std::uint8_t,
                   nanobind::detail::cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), nullptr);
    for (const auto& [name, enumerator] : kEnumerators<Enum>)
      if (text && std::strcmp(name, text) == 0) {
        this->value = enumerator;
        return true;
      }
    PyErr_Clear();
    return false;
  }
  static nanobind::handle from_cpp(Enum given, nanobind::rv_policy,
                                   nanobind::detail::cleanup_list*) noexcept {
    for (const auto& [name, enumerator] : kEnumerators<Enum>)
      if (enumerator == given) return PyUnicode_FromString(name);
    return nullptr;
  }
};

}  // namespace meshard::python

namespace nanobind::detail {

template <>
struct type_caster<meshard::python::OptionalOperand> {
  NB_TYPE_CASTER(meshard::python::OptionalOperand, const_name("Tensor | complex | None"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value.given = !source.is_none();
    return !value.given || value.operand.load(source.ptr());
  }
};

template <>
struct type_caster<meshard::python::Operands> {
  NB_TYPE_CASTER(meshard::python::Operands,
                 const_name("collections.abc.Sequence[Tensor | complex]"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    if (!PyList_Check(source.ptr()) && !PyTuple_Check(source.ptr())) return false;
    const Py_ssize_t count = PySequence_Size(source.ptr());
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* element = PySequence_GetItem(source.ptr(), i);
      const bool loaded = element && value.all.emplace_back().load(element);
      Py_XDECREF(element);  // the sequence holds it during the call
      if (!loaded) return false;
    }
    return true;
  }
};

// The names of the dimensions of input, kernel and result.
template <>
struct type_caster<meshard::ConvolutionLayout> {
  NB_TYPE_CASTER(meshard::ConvolutionLayout, const_name("tuple[str, str, str]"))
  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<std::tuple<std::string_view, std::string_view, std::string_view>> texts;
    if (!texts.from_python(source, flags, cleanup)) return false;
    auto [input, kernel, result] =
        static_cast<std::tuple<std::string_view, std::string_view, std::string_view>>(texts);
    value = {input, kernel, result};
    return true;
  }
};

template <>
struct type_caster<meshard::WindowPadding> {
  NB_TYPE_CASTER(meshard::WindowPadding,
                 const_name("str | int | collections.abc.Sequence[int | tuple[int, int]]"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) {
    return meshard::python::load_padding(source.ptr(), value);
  }
};

}  // namespace nanobind::detail

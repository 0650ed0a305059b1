// The Python type Tensor, and operands.
#pragma once
#include <nanobind/nanobind.h>

#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::python {

/// The tensor that a Python object holds; nullptr if it is not a Tensor. Valid as long as the
/// object, and until it is assigned to.
Tensor* tensor_in(PyObject* object);

/// An object of class Tensor, as results and stubs name it.
class TensorObject : public nanobind::object {
  static bool is_tensor(PyObject* object) { return tensor_in(object) != nullptr; }
  NB_OBJECT_DEFAULT(TensorObject, nanobind::object, "Tensor", is_tensor)
};

/// A new Python object that holds the tensor.
TensorObject tensor_object(Tensor tensor);

/// A Python number, NumPy scalar or NumPy array as a tensor: weakly typed numbers get the default
/// dtype of their kind. None if the object is something else.
std::optional<Tensor> tensor_of_own_value(PyObject* object, const SourceLocation& where);
/// The same, or an array of another library.
std::optional<Tensor> tensor_of_value(PyObject* object, const SourceLocation& where);

/// An operand of an op: a tensor, a number, or an array of any library.
class Operand {
 public:
  /// False if the object is none of these; then no Python error is set. The error of an array that
  /// cannot be converted is thrown when the operand is used. A NumPy scalar is a number until
  /// settle_operands().
  bool load(PyObject* object) noexcept;
  /// The argument for an op. Valid as long as this operand.
  In in() const;
  bool is_tensor() const { return tensor_ || failure_; }
  /// A number that is not complex.
  bool is_real_number() const { return !is_tensor() && !complex_; }
  /// Null for a number.
  const Tensor* tensor() const;

 private:
  friend void settle_operands(std::span<Operand*> operands);
  bool load_number(PyObject* object) noexcept;
  void own(Tensor tensor) {
    own_ = std::move(tensor);
    tensor_ = &*own_;
  }
  const Tensor* tensor_ = nullptr;
  std::optional<Tensor> own_;
  std::exception_ptr failure_;
  Scalar scalar_;
  std::optional<std::pair<double, double>> complex_;
  PyObject* numpy_scalar_ = nullptr;  // borrowed
};

/// Gives numbers among the operands of one op their dtype. A scalar of NumPy is weakly typed beside
/// a tensor, as a number of Python is, and has its own dtype otherwise. Python's complex numbers
/// are complex128 beside a 64-bit float, otherwise complex64.
void settle_operands(std::span<Operand*> operands);

void bind_tensor(nanobind::module_& module);

}  // namespace meshard::python

template <>
struct nanobind::detail::type_caster<meshard::python::Operand> {
  NB_TYPE_CASTER(meshard::python::Operand, const_name("Tensor | complex"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    return value.load(source.ptr());
  }
};

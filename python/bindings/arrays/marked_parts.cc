#include "python/bindings/arrays/marked_parts.h"

#include "meshard/graph/op_def.h"
#include "python/bindings/arrays/tensors.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

PyObject* base_attribute() {
  static PyObject* name = PyUnicode_InternFromString("_base");
  return name;
}

}  // namespace

void mark_part(nb::handle part, PyObject* base) {
  nb::object reference = nb::steal(PyWeakref_NewRef(base, nullptr));
  if (!reference || PyObject_SetAttr(part.ptr(), base_attribute(), reference.ptr()) != 0)
    nb::raise_python_error();
}

namespace {

// Ops by which parts are made. Asking for an attribute that is not there takes longer than this.
bool may_be_part(const Value& value) {
  const OpDef& op = value->op();
  return value.storage() || op.name == "slice" || op.name == "reshape" || op.name == "flip" ||
         op.name == "permute_dims" || op.name == "real" || op.name == "imag";
}

}  // namespace

void check_is_no_part(PyObject* object) {
  const Tensor& tensor = *tensor_in(object);
  if (!tensor.defined() || !may_be_part(tensor.value())) return;
  nb::object reference = nb::steal(PyObject_GetAttr(object, base_attribute()));
  PyErr_Clear();
  if (!reference || !PyWeakref_Check(reference.ptr())) return;
  nb::object base = nb::handle(reference)();
  if (base.is_none() || base.ptr() == object) return;
  throw nb::type_error(
      "this tensor is a part of another one, taken by an index, T, reshape or a similar method: it "
      "is a value, not a view, so that an assignment to it would not reach the other one. Assign "
      "to "
      "that, as in x[0, 1] = v, or to a copy: part = x[0].copy()");
}

}  // namespace meshard::python

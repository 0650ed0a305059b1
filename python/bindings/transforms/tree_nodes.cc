#include "python/bindings/transforms/tree_nodes.h"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "python/bindings/arrays/foreign_arrays.h"
#include "python/bindings/arrays/tensors.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// Numbers equal objects of equal types equally. Kept for the life of the process.
class Numbered {
 public:
  std::uint64_t number_of(nb::handle object) {
    // 1, 1.0 and True are equal as keys, but differ in a form.
    nb::object key = nb::borrow(object);
    if (!is_plain(object.ptr())) key = nb::make_tuple(object, types_of(object));
    PyObject* known = PyDict_GetItemWithError(numbers_.ptr(), key.ptr());
    if (known) return PyLong_AsUnsignedLongLong(known);
    if (PyErr_Occurred()) nb::raise_python_error();
    const std::uint64_t number = objects_.size();
    numbers_[key] = number;
    objects_.push_back(object.inc_ref().ptr());
    return number;
  }
  PyObject* object(std::uint64_t number) const { return objects_[number]; }

 private:
  static bool is_plain(PyObject* object) {
    if (PyType_Check(object)) return true;
    if (!PyTuple_Check(object)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(object); ++i)
      if (!PyUnicode_CheckExact(PyTuple_GetItem(object, i))) return false;
    return true;
  }
  static nb::object types_of(nb::handle object) {
    if (!PyTuple_Check(object.ptr())) return nb::borrow(object.type());
    nb::list types;
    for (nb::handle element : object) types.append(types_of(element));
    return nb::tuple(types);
  }

  nb::dict numbers_;
  std::vector<PyObject*> objects_;
};

Numbered& numbered() {
  static auto* all = new Numbered;
  return *all;
}

std::unordered_map<PyTypeObject*, ClassInfo>& class_table() {
  static auto* table = new std::unordered_map<PyTypeObject*, ClassInfo>;
  return *table;
}

// A slot that the class or its bases fill; also of classes of C.
void* slot_of(PyTypeObject* type, int slot) { return PyType_GetSlot(type, slot); }

bool is_subclass(PyTypeObject* type, const char* module, const char* name) {
  nb::object base = nb::module_::import_(module).attr(name);
  return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(base.ptr())) != 0;
}

// Functions are the same if they are one object; what they do does not change.
bool is_function_class(PyTypeObject* type) {
  for (const char* name : {"FunctionType", "MethodType", "BuiltinFunctionType",
                           "WrapperDescriptorType", "MethodDescriptorType", "MethodWrapperType"})
    if (is_subclass(type, "types", name)) return true;
  const std::string module = nb::cast<std::string>(
      nb::str(nb::handle(reinterpret_cast<PyObject*>(type)).attr("__module__")));
  return module == "nanobind" || is_subclass(type, "functools", "partial") ||
         is_subclass(type, "numpy", "ufunc");
}

bool is_own_class(PyTypeObject* type) {
  const std::string module = nb::cast<std::string>(
      nb::str(nb::handle(reinterpret_cast<PyObject*>(type)).attr("__module__")));
  return module == "meshard" || module.starts_with("meshard.");
}

bool is_container_class(PyTypeObject* type) {
  return slot_of(type, Py_tp_iter) || slot_of(type, Py_sq_item) || slot_of(type, Py_mp_subscript);
}

bool has_values_to_compare(PyTypeObject* type) {
  const void* hash = slot_of(type, Py_tp_hash);
  return slot_of(type, Py_tp_richcompare) != slot_of(&PyBaseObject_Type, Py_tp_richcompare) &&
         hash != slot_of(&PyBaseObject_Type, Py_tp_hash) &&
         hash != reinterpret_cast<void*>(PyObject_HashNotImplemented);
}

void examine_leaves(PyTypeObject* type, ClassInfo& info) {
  info.is_number = slot_of(type, Py_nb_float) || slot_of(type, Py_nb_index);
  if (PyType_IsSubtype(type, &PyUnicode_Type) || PyType_IsSubtype(type, &PyBytes_Type) ||
      PyType_IsSubtype(type, &PyType_Type) || PyType_IsSubtype(type, &PyModule_Type) ||
      type == &PyEllipsis_Type || type == &PyRange_Type || is_subclass(type, "enum", "Enum") ||
      is_subclass(type, "numpy", "dtype") || is_function_class(type) || is_own_class(type)) {
    info.can_be_constant = true;
  } else if (!info.is_number && has_values_to_compare(type)) {
    // Of a container, every element must be a constant. That is known of these two.
    info.can_be_constant = !is_container_class(type) || PyType_IsSubtype(type, &PyTuple_Type) ||
                           PyType_IsSubtype(type, &PyFrozenSet_Type);
  }
}

ClassInfo examined(PyTypeObject* type) {
  nb::handle handle(reinterpret_cast<PyObject*>(type));
  ClassInfo info;
  if (PyType_IsSubtype(type, &PyTuple_Type) && nb::hasattr(handle, "_fields")) {
    info.kind = Node::kNamedTuple;
  } else if (nb::hasattr(handle, "__dataclass_fields__")) {
    info.kind = Node::kDataclass;
    nb::list children, statics;
    for (nb::handle field :
         nb::object(nb::module_::import_("dataclasses").attr("fields")(handle))) {
      nb::object is_static =
          nb::object(field.attr("metadata")).attr("get")("static", nb::bool_(false));
      (nb::cast<bool>(nb::bool_(is_static)) ? statics : children).append(field.attr("name"));
    }
    info.is_stacked = nb::hasattr(handle, "__meshard_stacked__");
    info.fields = nb::tuple(children).release().ptr();
    info.statics = nb::tuple(statics).release().ptr();
  } else {
    examine_leaves(type, info);
    return info;
  }
  info.number = number_of(handle);
  return info;
}

bool is_hashable(PyObject* object) {
  if (PyObject_Hash(object) != -1) return true;
  PyErr_Clear();
  return false;
}

bool is_plain_number(PyObject* object) {
  return PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object);
}

// An element of a tuple or a frozenset that is a constant.
bool is_constant_element(PyObject* object) {
  if (object == Py_None || is_plain_number(object)) return true;
  if (tensor_in(object) || is_array(object)) return false;
  if (!PyTuple_CheckExact(object)) {
    const ClassInfo& info = info_of(Py_TYPE(object));
    return info.kind == Node::kConstant && is_constant(object);
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(object); ++i)
    if (!is_constant_element(PyTuple_GetItem(object, i))) return false;
  return true;
}

}  // namespace

std::uint64_t number_of(nb::handle object) { return numbered().number_of(object); }
PyObject* numbered_object(std::uint64_t number) { return numbered().object(number); }

const ClassInfo& info_of(PyTypeObject* type) {
  auto& table = class_table();
  if (auto known = table.find(type); known != table.end()) return known->second;
  Py_INCREF(reinterpret_cast<PyObject*>(type));  // a new class must not get its address
  return table.insert_or_assign(type, examined(type)).first->second;
}

void register_node(nb::type_object type, nb::object flatten, nb::object unflatten,
                   nb::object keys) {
  auto* key = reinterpret_cast<PyTypeObject*>(type.ptr());
  ClassInfo info;
  info.kind = Node::kRegistered;
  info.flatten = flatten.release().ptr();
  info.unflatten = unflatten.release().ptr();
  if (!keys.is_none()) info.keys = keys.release().ptr();
  type.inc_ref();
  class_table()[key] = info;
}

bool is_constant(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!info_of(type).can_be_constant || !is_hashable(object)) return false;
  if (!PyType_IsSubtype(type, &PyTuple_Type) && !PyType_IsSubtype(type, &PyFrozenSet_Type))
    return true;
  for (nb::handle element : nb::handle(object))
    if (!is_constant_element(element.ptr())) return false;
  return true;
}

}  // namespace meshard::python

#include "python/bindings/arrays/tensors.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <string>
#include <utility>

#include "meshard/core.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/storage.h"
#include "python/bindings/arrays/foreign_arrays.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/marked_parts.h"
#include "python/bindings/arrays/read_part.h"
#include "python/bindings/interpreter/assignment_scope.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/guarded.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/release_later.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/interpreter/waiting.h"
#include "python/bindings/ops/repeated_calls.h"
#include "python/bindings/ops/standard_ops.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

PyTypeObject* tensor_type = nullptr;
PyObject* advanced_index = nullptr;  // handles what is not an integer, a slice, None or `...`
PyObject* advanced_assign = nullptr;

// --- operators ---------------------------------------------------------------------------------

template <class Op>
PyObject* binary(PyObject* a, PyObject* b, const Op& op) noexcept {
  return guarded([&]() -> PyObject* {
    Operand x, y;
    if (!x.load(a) || !y.load(b)) Py_RETURN_NOTIMPLEMENTED;
    CallerLine line;
    Operand* both[] = {&x, &y};
    settle_operands(both);
    return tensor_object(op(x.in(), y.in())).release().ptr();
  });
}

template <Tensor (*op)(In, In)>
PyObject* binary_slot(PyObject* a, PyObject* b) noexcept {
  return binary(a, b, op);
}

template <Tensor (*op)(In)>
PyObject* unary_slot(PyObject* a) noexcept {
  return guarded([&]() -> PyObject* {
    CallerLine line;
    return tensor_object(op(In(*tensor_in(a), line.where()))).release().ptr();
  });
}

Tensor matrix_product(In a, In b) { return matmul(a, b); }
Tensor itself(In x) { return *x.tensor; }

// --- in-place operators ------------------------------------------------------------------------

// The handle is bound to the result, which must have the type of its value.
template <class Op>
PyObject* in_place(PyObject* self, PyObject* other, const Op& op) noexcept {
  return guarded([&]() -> PyObject* {
    Tensor& target = *tensor_in(self);
    Operand x, y;
    if (!x.load(self) || !y.load(other)) Py_RETURN_NOTIMPLEMENTED;
    CallerLine line;
    Operand* both[] = {&x, &y};
    settle_operands(both);
    Tensor result = op(x.in(), y.in());
    if (result.type() != target.type())
      throw nb::type_error(cat("an in-place operation on ", target.type(), " cannot give ",
                               result.type(), ": convert the operand, or write x = x op y")
                               .c_str());
    rebind(target, std::move(result));
    Py_INCREF(self);
    return self;
  });
}

template <Tensor (*op)(In, In)>
PyObject* in_place_slot(PyObject* self, PyObject* other) noexcept {
  return in_place(self, other, op);
}

PyObject* in_place_power_slot(PyObject* self, PyObject* other, PyObject* modulus) noexcept {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return in_place(self, other, [](In x, In y) { return pow(x, y); });
}

PyObject* power_slot(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(a, b, [](In x, In y) { return pow(x, y); });
}

// True if the other object may know how to compare itself with a tensor.
bool compares_itself(PyObject* object) {
  if (object == Py_None || PyUnicode_Check(object) || PyBytes_Check(object) ||
      PyDict_Check(object) || PyAnySet_Check(object))
    return false;
  return PyType_GetSlot(Py_TYPE(object), Py_tp_richcompare) !=
         PyType_GetSlot(&PyBaseObject_Type, Py_tp_richcompare);
}

// Python compares objects by identity if neither knows the other, which would be a wrong answer for
// elements.
PyObject* compare_slot(PyObject* a, PyObject* b, int kind) noexcept {
  static constexpr Tensor (*kOps[])(In, In) = {less,      less_equal, equal,
                                               not_equal, greater,    greater_equal};
  PyObject* result = binary(a, b, kOps[kind]);
  if (result != Py_NotImplemented) return result;
  if (PyList_Check(b) || PyTuple_Check(b)) {
    Py_DECREF(result);
    return guarded([&]() -> PyObject* {
      nb::object list = nb::module_::import_("meshard").attr("asarray")(nb::handle(b));
      return binary(a, list.ptr(), kOps[kind]);
    });
  }
  if (compares_itself(b)) return result;
  Py_DECREF(result);
  PyErr_Format(
      PyExc_TypeError,
      "a tensor cannot be compared with %R: compare it with a number, a list or an array, or "
      "the object itself with `is`",
      b);
  return nullptr;
}

// --- reading -----------------------------------------------------------------------------------

// Not in host memory, and of no program that is being traced.
bool is_pending(const Value& value) {
  const Storage* storage = value.storage();
  return storage ? storage->kind() == Storage::Kind::kDevice
                 : value->trace() == 0 && !manual_axes(value);
}

HostArray read(PyObject* object) {
  const Tensor& tensor = *tensor_in(object);
  CallerLine line;
  release_collected();
  if (std::optional<HostArray> part = read_part(object, line.where())) return *std::move(part);
  // Ctrl-C ends the wait for a value that is not there yet.
  if (tensor.defined() && is_pending(tensor.value())) wait_for(std::span(&tensor, 1), line.where());
  Unlocked unlocked;
  return tensor.to_host(line.where());
}

HostArray read_single(PyObject* object, const char* as) {
  const Tensor& tensor = *tensor_in(object);
  if (tensor.size() != 1)
    throw nb::type_error(
        cat("only a tensor of one element can be converted to ", as, "; this is ", tensor.type())
            .c_str());
  return read(object);
}

// The text of a traced, local or abstract value, or of one whose parts are in several processes;
// None for a value that can be read.
std::optional<std::string> text_without_value(const Tensor& x) {
  CallerLine line;
  Unlocked unlocked;
  if (!x.defined() || manual_axes(x.value())) return x.to_string();
  if (Storage* storage = x.value().storage()) {
    if (storage->kind() == Storage::Kind::kAbstract) return x.to_string();
    std::string parts = storage->gone().empty() ? storage->local_text(line.where()) : "";
    return parts.empty() ? std::nullopt : std::optional(std::move(parts));
  }
  if (tracing() || x.value()->trace() != 0 || x.value()->operands().empty()) return x.to_string();
  return std::nullopt;
}

PyObject* item_of(const HostArray& array) {
  const DType dtype = array.dtype();
  if (dtype == DType::bool_) return PyBool_FromLong(array.item<bool>());
  if (is_unsigned_integer(dtype)) return PyLong_FromUnsignedLongLong(array.item<std::uint64_t>());
  if (is_integer(dtype)) return PyLong_FromLongLong(array.item<std::int64_t>());
  if (is_complex(dtype)) {
    const auto value = array.item<Complex128>();
    return PyComplex_FromDoubles(value.real, value.imag);
  }
  return PyFloat_FromDouble(array.item<double>());
}

int bool_slot(PyObject* self) noexcept {
  PyObject* item = guarded([&] { return item_of(read_single(self, "bool")); });
  if (!item) return -1;
  const int truth = PyObject_IsTrue(item);
  Py_DECREF(item);
  return truth;
}

PyObject* converted(PyObject* self, const char* name, PyObject* (*convert)(PyObject*)) {
  return guarded([&]() -> PyObject* {
    nb::object item = nb::steal(item_of(read_single(self, name)));
    return convert(item.ptr());
  });
}

PyObject* int_slot(PyObject* self) noexcept {
  return converted(self, "int", [](PyObject* item) {
    return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PyLong_Type), item, nullptr);
  });
}
PyObject* float_slot(PyObject* self) noexcept { return converted(self, "float", PyNumber_Float); }
PyObject* index_slot(PyObject* self) noexcept {
  return guarded([&]() -> PyObject* {
    if (!is_integer(tensor_in(self)->dtype()))
      throw nb::type_error(
          cat("only a tensor of integers is an index; this is ", tensor_in(self)->type()).c_str());
    return item_of(read_single(self, "an index"));
  });
}

Py_ssize_t length_slot(PyObject* self) noexcept {
  const Tensor& tensor = *tensor_in(self);
  if (tensor.defined() && tensor.rank() > 0) return static_cast<Py_ssize_t>(tensor.shape()[0]);
  PyErr_SetString(PyExc_TypeError, "a tensor of rank 0 has no length");
  return -1;
}

// --- indexing ----------------------------------------------------------------------------------

bool load_bound(PyObject* object, RangeBound& bound) {
  if (object == Py_None) return true;
  std::int64_t number = 0;
  if (!load_integer(object, number)) return false;
  bound = RangeBound(number);
  return true;
}

// False for anything but an integer, a slice of integers, None and `...`.
bool load_item(PyObject* object, std::vector<IndexItem>& items) {
  std::int64_t number = 0;
  if (object == Py_None) {
    items.emplace_back(newaxis);
  } else if (object == Py_Ellipsis) {
    items.emplace_back(ellipsis);
  } else if (PySlice_Check(object)) {
    nb::handle given(object);
    RangeBound start = none, stop = none, stride = 1;
    if (!load_bound(nb::object(given.attr("start")).ptr(), start) ||
        !load_bound(nb::object(given.attr("stop")).ptr(), stop) ||
        !load_bound(nb::object(given.attr("step")).ptr(), stride))
      return false;
    items.emplace_back(range(start, stop, *stride.value));
  } else if (!tensor_in(object) && !is_numpy_array(object) && !is_foreign_array(object) &&
             load_integer(object, number)) {
    items.emplace_back(number);
  } else {
    return false;
  }
  return true;
}

bool load_items(PyObject* key, std::vector<IndexItem>& items) {
  if (!PyTuple_Check(key)) return load_item(key, items);
  for (Py_ssize_t i = 0; i < PyTuple_Size(key); ++i)
    if (!load_item(PyTuple_GetItem(key, i), items)) return false;
  return true;
}

PyObject* item_slot(PyObject* self, PyObject* key) noexcept {
  return guarded([&]() -> PyObject* {
    std::vector<IndexItem> items;
    if (!load_items(key, items))
      return PyObject_CallFunctionObjArgs(advanced_index, self, key, nullptr);
    CallerLine line;
    const Tensor& whole = *tensor_in(self);
    Tensor part = index(In(whole, line.where()), items);
    const bool is_whole = part.value() == whole.value();
    nb::object made = part_object(self, std::move(part), line.where());
    if (!is_whole) mark_part(made, self);
    return made.release().ptr();
  });
}

int assign_slot(PyObject* self, PyObject* key, PyObject* value) noexcept {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
    return -1;
  }
  // From Python 3.14 on, a variable is passed without a reference of its own.
  if (Py_REFCNT(self) == 1 && Py_Version < 0x030E0000) {
    PyErr_SetString(
        PyExc_TypeError,
        "an assignment to elements of a new tensor that nothing refers to would be lost: "
        "indexing, T, reshape and all functions return new values, not views. Write "
        "x[0, 1] = v instead of x[0][1] = v");
    return -1;
  }
  PyObject* allowed = guarded([&]() -> PyObject* {
    check_is_no_part(self);
    return Py_None;
  });
  if (!allowed) return -1;
  PyObject* done = PyObject_CallFunctionObjArgs(advanced_assign, self, key, value, nullptr);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

template <class F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

Tensor* tensor_in(PyObject* object) {
  if (Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type))
    return nb::inst_ptr<Tensor>(nb::handle(object));
  return nullptr;
}

TensorObject tensor_object(Tensor tensor) {
  nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(tensor_type)));
  new (nb::inst_ptr<Tensor>(made)) Tensor(std::move(tensor));
  nb::inst_mark_ready(made);
  if (AssignmentScope* scope = AssignmentScope::current()) [[unlikely]]
    scope->add(*nb::inst_ptr<Tensor>(made));
  return nb::steal<TensorObject>(made.release());
}

bool Operand::load(PyObject* object) noexcept {
  tensor_ = tensor_in(object);
  if (tensor_) return true;
  auto load_array = [&](auto made) {
    try {
      own(made());
    } catch (...) {
      failure_ = std::current_exception();
    }
    return true;
  };
  if (is_numpy_scalar(object)) {
    PyObject* number = PyObject_CallMethod(object, "item", nullptr);
    const bool loaded = number && load_number(number);
    Py_XDECREF(number);
    PyErr_Clear();
    numpy_scalar_ = object;
    return loaded;
  }
  if (is_numpy_array(object))
    return load_array(
        [&] { return from_host(host_array_of(object, Memory::kShareIfReadOnly), caller_line()); });
  if (load_number(object)) return true;
  return is_foreign_array(object) && load_array([&] { return tensor_of_foreign(object); });
}

bool Operand::load_number(PyObject* object) noexcept {
  if (PyBool_Check(object)) {
    scalar_ = Scalar(object == Py_True);
  } else if (PyFloat_Check(object)) {
    scalar_ = Scalar(PyFloat_AsDouble(object));
  } else if (PyLong_Check(object)) {
    int overflow = 0;
    const std::int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
      scalar_ = Scalar(number);
    } else {
      const std::uint64_t large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
      if (overflow < 0 || PyErr_Occurred()) {
        PyErr_Clear();
        return false;
      }
      scalar_ = Scalar(large);
    }
  } else if (PyComplex_Check(object)) {
    complex_ = {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)};
  } else {
    return false;
  }
  return true;
}

const Tensor* Operand::tensor() const {
  if (failure_) std::rethrow_exception(failure_);
  return tensor_;
}

In Operand::in() const {
  if (failure_) std::rethrow_exception(failure_);
  if (tensor_) return In(own_ ? *own_ : *tensor_, SourceLocation{});
  In number(0, SourceLocation{});
  number.scalar = scalar_;
  return number;
}

void settle_operands(std::span<Operand*> operands) {
  bool is_any = false, is_wide = false, has_tensor = false;
  for (const Operand* each : operands) has_tensor = has_tensor || each->tensor_;
  for (Operand* each : operands) {
    if (each->numpy_scalar_ && !has_tensor) {
      each->own(
          from_host(host_array_of(each->numpy_scalar_, Memory::kShareIfReadOnly), caller_line()));
      each->complex_.reset();
    }
    is_any = is_any || each->complex_;
    is_wide = is_wide || (each->tensor_ && (each->tensor_->dtype() == DType::f64 ||
                                            each->tensor_->dtype() == DType::c128));
  }
  if (!is_any) return;
  for (Operand* each : operands) {
    if (!each->complex_) continue;
    auto [real, imag] = *each->complex_;
    each->own(constant(is_wide ? HostArray::scalar(Complex128(real, imag))
                               : HostArray::scalar(Complex64(static_cast<float>(real),
                                                             static_cast<float>(imag)))));
    each->complex_.reset();
  }
}

std::optional<Tensor> tensor_of_value(PyObject* object, const SourceLocation& where) {
  if (std::optional<Tensor> own = tensor_of_own_value(object, where)) return own;
  if (is_foreign_array(object)) return tensor_of_foreign(object);
  return std::nullopt;
}

std::optional<Tensor> tensor_of_own_value(PyObject* object, const SourceLocation& where) {
  if (PyUnicode_Check(object) || PyBytes_Check(object)) return std::nullopt;  // NumPy's too
  if (is_numpy_array(object) || is_numpy_scalar(object))
    return from_host(host_array_of(object, Memory::kCopy), where);
  if (PyBool_Check(object)) return from_host(HostArray::scalar(object == Py_True), where);
  if (PyFloat_Check(object))
    return from_host(HostArray::scalar(static_cast<float>(PyFloat_AsDouble(object))), where);
  if (PyComplex_Check(object))
    return from_host(
        HostArray::scalar(Complex64(static_cast<float>(PyComplex_RealAsDouble(object)),
                                    static_cast<float>(PyComplex_ImagAsDouble(object)))),
        where);
  if (PyLong_Check(object)) {
    std::int64_t number = 0;
    if (!load_integer(object, number) || number != static_cast<std::int32_t>(number))
      throw_invalid(where, "the integer ", nb::cast<std::string>(nb::str(nb::handle(object))),
                    " does not fit into i32; pass it as an array with a dtype");
    return from_host(HostArray::scalar(static_cast<std::int32_t>(number)), where);
  }
  return std::nullopt;
}

void bind_tensor(nb::module_& module) {
  PyType_Slot slots[] = {slot(Py_nb_add, binary_slot<add>),
                         slot(Py_nb_subtract, binary_slot<subtract>),
                         slot(Py_nb_multiply, binary_slot<multiply>),
                         slot(Py_nb_true_divide, binary_slot<divide>),
                         slot(Py_nb_floor_divide, binary_slot<floor_divide>),
                         slot(Py_nb_remainder, binary_slot<remainder>),
                         slot(Py_nb_power, power_slot),
                         slot(Py_nb_matrix_multiply, binary_slot<matrix_product>),
                         slot(Py_nb_and, binary_slot<bitwise_and>),
                         slot(Py_nb_or, binary_slot<bitwise_or>),
                         slot(Py_nb_xor, binary_slot<bitwise_xor>),
                         slot(Py_nb_lshift, binary_slot<bitwise_left_shift>),
                         slot(Py_nb_rshift, binary_slot<bitwise_right_shift>),
                         slot(Py_nb_inplace_add, in_place_slot<add>),
                         slot(Py_nb_inplace_subtract, in_place_slot<subtract>),
                         slot(Py_nb_inplace_multiply, in_place_slot<multiply>),
                         slot(Py_nb_inplace_true_divide, in_place_slot<divide>),
                         slot(Py_nb_inplace_floor_divide, in_place_slot<floor_divide>),
                         slot(Py_nb_inplace_remainder, in_place_slot<remainder>),
                         slot(Py_nb_inplace_power, in_place_power_slot),
                         slot(Py_nb_inplace_matrix_multiply, in_place_slot<matrix_product>),
                         slot(Py_nb_inplace_and, in_place_slot<bitwise_and>),
                         slot(Py_nb_inplace_or, in_place_slot<bitwise_or>),
                         slot(Py_nb_inplace_xor, in_place_slot<bitwise_xor>),
                         slot(Py_nb_inplace_lshift, in_place_slot<bitwise_left_shift>),
                         slot(Py_nb_inplace_rshift, in_place_slot<bitwise_right_shift>),
                         slot(Py_nb_negative, unary_slot<negative>),
                         slot(Py_nb_positive, unary_slot<itself>),
                         slot(Py_nb_absolute, unary_slot<abs>),
                         slot(Py_nb_invert, unary_slot<bitwise_invert>),
                         slot(Py_nb_bool, bool_slot),
                         slot(Py_nb_int, int_slot),
                         slot(Py_nb_float, float_slot),
                         slot(Py_nb_index, index_slot),
                         slot(Py_mp_subscript, item_slot),
                         slot(Py_mp_ass_subscript, assign_slot),
                         slot(Py_mp_length, length_slot),
                         slot(Py_tp_richcompare, compare_slot),
                         slot(Py_tp_hash, PyObject_HashNotImplemented),
                         {0, nullptr}};
  nb::class_<Tensor> type(module, "Tensor", nb::type_slots(slots), nb::is_weak_referenceable(),
                          nb::dynamic_attr(),
                          "A value on devices or on the host, or a step of a program that computes "
                          "it when it is read.\n\n"
                          "It has a shape, a dtype and a sharding, and never changes: assignments "
                          "to its elements replace what the name refers to. Operators and methods "
                          "are those of NumPy arrays, and record ops. `numpy()`, `tolist()`, "
                          "`item()` and printing compute the value and read it. Arrays of other "
                          "libraries become tensors by asarray(), and tensors become arrays by "
                          "`numpy.asarray` or DLPack.\n\n"
                          "    >>> x = ms.arange(6).reshape(2, 3)\n"
                          "    >>> x.shape, x.dtype, float(x.sum())\n"
                          "    ((2, 3), dtype('int32'), 15.0)");
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  type.attr("__module__") = "meshard";
  type.attr("__array_priority__") = 100;  // NumPy's operators leave tensors to ours
  type.def_prop_ro(
          "shape", [](const Tensor& x) { return x.shape(); }, "The sizes of the dimensions.")
      .def_prop_ro(
          "dtype", [](const Tensor& x) { return x.dtype(); }, "The element type.")
      .def_prop_ro(
          "ndim", [](const Tensor& x) { return x.rank(); }, "The number of dimensions.")
      .def_prop_ro(
          "size", [](const Tensor& x) { return x.size(); }, "The number of elements.")
      .def_prop_ro(
          "nbytes", [](const Tensor& x) { return x.type().bytes(); },
          "The size of the whole value in bytes.")
      .def_prop_ro("sharding", &Tensor::sharding,
                   "The sharding that the program or the compiler gave it, or None.")
      .def_prop_ro("stored_sharding", &Tensor::stored_sharding,
                   "How its bytes are laid out on devices now, or None.")
      .def_prop_ro("placement", &Tensor::placement,
                   "Where the bytes are now: `host`, `recorded`, `devices 0..7 of cpu`.")
      .def(
          "numpy", [](nb::handle_t<Tensor> x) { return numpy_array(read(x.ptr())); },
          "The whole value as a read-only NumPy array. Computes it first if needed.")
      .def(
          "item",
          [](nb::handle_t<Tensor> x) {
            return nb::steal(item_of(read_single(x.ptr(), "a Python number")));
          },
          "The only element as a Python number.")
      .def("__complex__",
           [](nb::handle_t<Tensor> x) {
             nb::object item = nb::steal(item_of(read_single(x.ptr(), "complex")));
             return nb::handle(reinterpret_cast<PyObject*>(&PyComplex_Type))(item);
           })
      .def("_text", text_without_value, "The text of a value that cannot be read whole, or None.")
      .def(
          "to_string",
          [](const Tensor& x) {
            Unlocked unlocked;
            return x.to_string();
          },
          "The type and value as text.")
      .def_prop_ro(
          "is_traced",
          [](const Tensor& x) {
            return x.defined() && x.value()->trace() != 0 && !x.value().storage();
          },
          "True for a value of a program that is being traced, which cannot be read.")
      .def_prop_ro(
          "is_recorded", [](const Tensor& x) { return x.defined() && !x.value().storage(); },
          "True for a value that is not computed yet.")
      .def("_rebind", [](Tensor& x, const Tensor& value) { rebind(x, value); });
  module.def("mark_part", [](nb::handle_t<Tensor> part, nb::handle_t<Tensor> base) {
    mark_part(part, base.ptr());
    return nb::borrow(part);
  });
  module.def(
      "is_differentiating", [] { return internal::recorder().keep_operands != 0; },
      "True while a function that will be differentiated is recorded.");
  module.def("set_foreign_arrays", set_foreign_arrays);
  module.def(
      "is_foreign_array", [](nb::handle object) { return is_foreign_array(object.ptr()); },
      nb::arg("object").none(), "Whether an object is an array of a library other than NumPy.");
  module.def("set_index_functions", [](nb::object index, nb::object assign) {
    advanced_index = index.release().ptr();
    advanced_assign = assign.release().ptr();
  });
  module.def(
      "from_numpy",
      [](nb::handle array, bool copy, bool share) {
        CallerLine line;
        release_collected();
        return from_host(host_array_of(array, share  ? Memory::kShare
                                              : copy ? Memory::kCopy
                                                     : Memory::kShareIfReadOnly),
                         line.where());
      },
      nb::arg("array"), nb::arg("copy") = false, nb::arg("share") = false);
  bind_standard_ops(module);
  bind_repeated_calls(module);
}

}  // namespace meshard::python

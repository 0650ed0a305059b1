#include "python/bindings/arrays/host_arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "python/bindings/interpreter/dtypes.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/release_later.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

PyTypeObject* array_type = nullptr;
PyTypeObject* scalar_type = nullptr;

// The buffer protocol does not know the types of ml_dtypes, so their bytes are read as integers.
const char* integer_of_size(std::size_t bytes) {
  switch (bytes) {
    case 1: return "uint8";
    case 2: return "uint16";
    case 4: return "uint32";
    default: return "uint64";
  }
}

bool is_small_float(DType dtype) { return dtype == DType::bf16 || is_float8(dtype); }

nb::dlpack::dtype exchanged_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_in_bytes(dtype));
  auto of = [&](nb::dlpack::dtype_code code) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1};
  };
  if (dtype == DType::bool_) return of(nb::dlpack::dtype_code::Bool);
  if (is_signed_integer(dtype)) return of(nb::dlpack::dtype_code::Int);
  if (is_unsigned_integer(dtype) || is_small_float(dtype)) return of(nb::dlpack::dtype_code::UInt);
  if (is_complex(dtype)) return of(nb::dlpack::dtype_code::Complex);
  return of(nb::dlpack::dtype_code::Float);
}

// What a subclass of numpy.ndarray says about its elements would be lost: masks, units.
// @error type error
void check_subclass(nb::handle array) {
  if (Py_TYPE(array.ptr()) == array_type) return;
  nb::handle type = array.type(), base(reinterpret_cast<PyObject*>(array_type));
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  const bool is_masked =
      nb::hasattr(array, "filled") && nb::hasattr(array, "mask") &&
      PyObject_IsTrue(
          nb::object(nb::module_::import_("numpy").attr("any")(array.attr("mask"))).ptr()) != 0;
  if (is_masked)
    throw nb::type_error(cat("elements of this ", name,
                             " are masked, and a tensor has no mask: use filled(), or its data and "
                             "its mask as two arrays")
                             .c_str());
  if (!nb::object(type.attr("__array_ufunc__")).is(nb::object(base.attr("__array_ufunc__"))))
    throw nb::type_error(cat("a ", name,
                             " says what its elements mean, which a tensor cannot: convert it with "
                             "numpy.asarray")
                             .c_str());
}

}  // namespace

void set_numpy_types(nb::object array, nb::object scalar) {
  array_type = reinterpret_cast<PyTypeObject*>(array.release().ptr());
  scalar_type = reinterpret_cast<PyTypeObject*>(scalar.release().ptr());
}

bool is_numpy_array(PyObject* object) {
  return array_type && PyObject_TypeCheck(object, array_type);
}
bool is_numpy_scalar(PyObject* object) {
  return scalar_type && PyObject_TypeCheck(object, scalar_type);
}

HostArray host_array_of(nb::handle given, Memory memory) {
  static PyObject* asarray =
      nb::object(nb::module_::import_("numpy").attr("asarray")).release().ptr();
  const bool is_scalar = is_numpy_scalar(given.ptr());
  if (!is_scalar) check_subclass(given);
  nb::object array = is_scalar ? nb::handle(asarray)(given) : nb::borrow(given);
  nb::object dtype = array.attr("dtype");
  std::optional<DType> found = dtype_of(dtype.ptr());
  if (!found && !nb::cast<bool>(dtype.attr("isnative"))) {
    array = array.attr("astype")(dtype.attr("newbyteorder")("="));
    found = dtype_of(nb::object(array.attr("dtype")).ptr());
    memory = Memory::kShare;  // nobody else has the copy
  }
  if (!found)
    throw nb::type_error(
        cat("meshard has no element type for NumPy's ", nb::cast<std::string>(nb::str(dtype)))
            .c_str());
  Dimensions sizes;
  for (nb::handle size : nb::object(array.attr("shape")))
    sizes.push_back(nb::cast<std::int64_t>(size));
  TensorType type{*found, Shape(std::move(sizes))};
  if (is_small_float(*found)) array = array.attr("view")(integer_of_size(size_in_bytes(*found)));

  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(array.ptr(), buffer.get(), PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    array = array.attr("copy")("C");
    memory = Memory::kShare;
    if (PyObject_GetBuffer(array.ptr(), buffer.get(), PyBUF_C_CONTIGUOUS) != 0)
      nb::raise_python_error();
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(buffer->buf) % size_in_bytes(*found) == 0;
  const bool share = aligned && (memory == Memory::kShare ||
                                 (memory == Memory::kShareIfReadOnly && buffer->readonly));
  if (share && type.size() > 0) {
    Py_buffer* kept = buffer.release();
    return HostArray::borrow(std::move(type), kept->buf, [kept] {
      release_later([kept] {
        PyBuffer_Release(kept);
        delete kept;
      });
    });
  }
  HostArray copy = [&] {
    Unlocked unlocked;
    return HostArray::copy_of(std::move(type), buffer->buf);
  }();
  PyBuffer_Release(buffer.get());
  return copy;
}

nb::object numpy_array(const HostArray& array) {
  auto* kept = new HostArray(array);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<HostArray*>(p); });
  std::vector<std::size_t> sizes(array.shape().begin(), array.shape().end());
  nb::ndarray<nb::numpy, nb::ro> view(kept->bytes(), sizes.size(), sizes.data(), owner, nullptr,
                                      exchanged_type(array.dtype()));
  nb::object made = nb::cast(view, nb::rv_policy::reference);
  if (is_small_float(array.dtype()))
    made = made.attr("view")(nb::handle(dtype_object(array.dtype())));
  return made;
}

}  // namespace meshard::python

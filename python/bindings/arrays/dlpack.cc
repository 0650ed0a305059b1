// DLPack, both ways. Arrays are exchanged in host memory, which the devices of a CPU platform use.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/from_host.h"
#include "meshard/runtime/device_array.h"
#include "python/bindings/arrays/dlpack_abi.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/guarded.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/release_later.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/interpreter/waiting.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

constexpr const char* kOldName = "dltensor";
constexpr const char* kName = "dltensor_versioned";

// DLPack's code of each dtype; the number of bits is that of its size.
constexpr std::array<std::pair<DType, dlpack::TypeCode>, kDTypeCount> kCodes = {{
    {DType::bool_, dlpack::kBool},
    {DType::i8, dlpack::kInt},
    {DType::i16, dlpack::kInt},
    {DType::i32, dlpack::kInt},
    {DType::i64, dlpack::kInt},
    {DType::u8, dlpack::kUInt},
    {DType::u16, dlpack::kUInt},
    {DType::u32, dlpack::kUInt},
    {DType::u64, dlpack::kUInt},
    {DType::f16, dlpack::kFloat},
    {DType::bf16, dlpack::kBfloat},
    {DType::f32, dlpack::kFloat},
    {DType::f64, dlpack::kFloat},
    {DType::f8e4m3fn, dlpack::kFloat8E4M3Fn},
    {DType::f8e5m2, dlpack::kFloat8E5M2},
    {DType::f8e4m3, dlpack::kFloat8E4M3},
    {DType::f8e3m4, dlpack::kFloat8E3M4},
    {DType::f8e4m3fnuz, dlpack::kFloat8E4M3Fnuz},
    {DType::f8e5m2fnuz, dlpack::kFloat8E5M2Fnuz},
    {DType::f8e4m3b11fnuz, dlpack::kFloat8E4M3B11Fnuz},
    {DType::f8e8m0fnu, dlpack::kFloat8E8M0Fnu},
    {DType::c64, dlpack::kComplex},
    {DType::c128, dlpack::kComplex},
}};

dlpack::DataType exchanged(DType dtype) {
  for (const auto& [known, code] : kCodes)
    if (known == dtype) return {code, static_cast<std::uint8_t>(8 * size_in_bytes(dtype)), 1};
  return {};
}

std::optional<DType> dtype_of_exchanged(dlpack::DataType type) {
  if (type.lanes != 1) return std::nullopt;
  for (const auto& [known, code] : kCodes)
    if (code == type.code && 8 * size_in_bytes(known) == type.bits) return known;
  return std::nullopt;
}

[[noreturn]] void raise_buffer_error(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  nb::raise_python_error();
}

// --- export ------------------------------------------------------------------------------------

// Memory that a consumer uses, and what keeps it alive. Dropped in any thread, without the lock.
struct Exported {
  Dimensions shape, strides;
  const void* data = nullptr;
  DType dtype = DType::f32;
  bool is_copy = false;
  HostArray array;                     // holds host memory
  std::optional<pjrt::HostView> view;  // holds a device's memory
};

// The buffer that holds the whole value in memory that the host can read.
std::optional<pjrt::HostView> whole_on_device(const Storage& storage) {
  const auto& array = static_cast<const DeviceArray&>(storage);
  const Sharding* sharding = array.sharding();
  if (array.num_shards() == 0 || (sharding && sharding->num_tiles() != 1)) return std::nullopt;
  Result<pjrt::HostView> view = array.buffers()[0].host_view();
  if (view.ok()) return *std::move(view);
  if (view.error().code() == ErrorCode::kUnimplemented) return std::nullopt;
  throw view.error();
}

std::unique_ptr<Exported> exported(const Tensor& tensor, std::optional<bool> copy) {
  CallerLine line;
  wait_for(std::span(&tensor, 1), line.where());
  auto made = std::make_unique<Exported>();
  {
    Unlocked unlocked;
    const Storage& storage = computed_storage(tensor.value(), line.where());
    if (storage.kind() == Storage::Kind::kDevice) made->view = whole_on_device(storage);
    if (made->view) {
      made->data = made->view->bytes().data();
    } else {
      made->is_copy = storage.kind() != Storage::Kind::kHost;
      if (!made->is_copy || copy.value_or(true)) made->array = tensor.to_host(line.where());
      made->data = made->array.bytes();
    }
    if (copy == true && !made->is_copy) {
      made->array = HostArray::copy_of(tensor.type(), made->data);
      made->data = made->array.bytes();
      made->view.reset();
      made->is_copy = true;
    }
  }
  if (made->is_copy && copy == false)
    raise_buffer_error(cat("the value on ", tensor.placement(),
                           " is not whole in the host's memory, so it must be copied, but copy is "
                           "False"));
  made->dtype = tensor.dtype();
  made->shape = tensor.shape().sizes();
  made->strides = tensor.shape().strides();
  return made;
}

void fill(dlpack::Array& array, Exported& from) {
  array.data = const_cast<void*>(from.data);
  array.ndim = static_cast<std::int32_t>(from.shape.size());
  array.dtype = exchanged(from.dtype);
  array.shape = from.shape.data();
  array.strides = from.strides.data();
}

// A capsule that owns a Managed or a ManagedVersioned, until a consumer renames it.
template <class M>
nb::object capsule_of(M* managed, const char* name) {
  static constexpr auto drop = [](PyObject* capsule) {
    for (const char* own : {kOldName, kName})
      if (PyCapsule_IsValid(capsule, own)) {
        auto* held = static_cast<M*>(PyCapsule_GetPointer(capsule, own));
        held->deleter(held);
        return;
      }
  };
  PyObject* capsule = PyCapsule_New(managed, name, drop);
  if (!capsule) {
    managed->deleter(managed);
    nb::raise_python_error();
  }
  return nb::steal(capsule);
}

template <class M>
M* managed_by(std::unique_ptr<Exported> made) {
  auto* managed = new M;
  fill(managed->array, *made);
  managed->context = made.release();
  managed->deleter = [](M* dropped) {
    delete static_cast<Exported*>(dropped->context);
    delete dropped;
  };
  return managed;
}

nb::object export_tensor(const Tensor& tensor, nb::handle stream,
                         std::optional<std::pair<std::int64_t, std::int64_t>> max_version,
                         std::optional<std::pair<std::int64_t, std::int64_t>> dl_device,
                         std::optional<bool> copy) {
  if (!stream.is_none())
    raise_buffer_error("stream must be None: meshard exports arrays in host memory");
  if (dl_device && (dl_device->first != dlpack::kCpu || dl_device->second != 0))
    raise_buffer_error(cat("meshard exports arrays in host memory, device (1, 0), not to (",
                           dl_device->first, ", ", dl_device->second, ")"));
  std::unique_ptr<Exported> made = exported(tensor, copy);
  const bool is_copy = made->is_copy;
  if (!max_version || max_version->first < 1)
    return capsule_of(managed_by<dlpack::Managed>(std::move(made)), kOldName);
  auto* managed = managed_by<dlpack::ManagedVersioned>(std::move(made));
  managed->flags = is_copy ? dlpack::kIsCopied : dlpack::kReadOnly;
  return capsule_of(managed, kName);
}

// --- import ------------------------------------------------------------------------------------

// A capsule of either kind, by name.
struct Taken {
  const dlpack::Array* array = nullptr;
  std::function<void()> release;
};

template <class M>
Taken taken_as(nb::handle capsule, const char* name, const char* used_name) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!managed || PyCapsule_SetName(capsule.ptr(), used_name) != 0) nb::raise_python_error();
  return {&managed->array, [managed] {
            // The producer's function may take the interpreter's lock.
            if (managed->deleter) release_later([managed] { managed->deleter(managed); });
          }};
}

Taken take(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), kName)) {
    auto* managed =
        static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kName));
    if (managed->version.major != 1)
      raise_buffer_error(cat("meshard reads DLPack 1, not ", managed->version.major));
    return taken_as<dlpack::ManagedVersioned>(capsule, kName, "used_dltensor_versioned");
  }
  if (PyCapsule_IsValid(capsule.ptr(), kOldName))
    return taken_as<dlpack::Managed>(capsule, kOldName, "used_dltensor");
  throw nb::type_error("not a DLPack capsule, or one that was used before");
}

bool is_row_major(const dlpack::Array& array, const Shape& shape) {
  if (!array.strides || shape.size() == 0) return true;
  const Dimensions expected = shape.strides();
  for (std::size_t d = 0; d < expected.size(); ++d)
    if (shape[d] != 1 && array.strides[d] != expected[d]) return false;
  return true;
}

// Copies elements in row-major order.
void copy_strided(const dlpack::Array& array, const std::byte* data, std::size_t element,
                  HostArray& copy) {
  std::byte* out = copy.mutable_bytes();
  const Shape& shape = copy.shape();
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t i = 0; i < shape.size(); ++i, out += element) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * array.strides[d];
    std::memcpy(out, data + offset * static_cast<std::int64_t>(element), element);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

Tensor import_capsule(nb::handle capsule, std::optional<bool> copy) {
  CallerLine line;
  release_collected();
  Taken taken = take(capsule);
  // From here on the array is released even if something fails.
  auto owner = std::shared_ptr<void>(nullptr, [release = taken.release](void*) { release(); });
  const dlpack::Array& array = *taken.array;
  if (array.device.kind != dlpack::kCpu && array.device.kind != dlpack::kCudaHost &&
      array.device.kind != dlpack::kRocmHost)
    raise_buffer_error(cat("the array is in the memory of a device (", array.device.kind, ", ",
                           array.device.id, "): copy it to the host first"));
  std::optional<DType> dtype = dtype_of_exchanged(array.dtype);
  if (!dtype)
    raise_buffer_error(cat("meshard has no element type for DLPack's code ",
                           static_cast<int>(array.dtype.code), " with ",
                           static_cast<int>(array.dtype.bits), " bits and ",
                           static_cast<int>(array.dtype.lanes), " lanes"));
  TensorType type{*dtype, Shape(Dimensions(array.shape, array.shape + array.ndim))};
  const std::size_t element = size_in_bytes(*dtype);
  const std::byte* data = static_cast<const std::byte*>(array.data) + array.byte_offset;
  const bool dense = is_row_major(array, type.shape);
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % element == 0;
  if (type.size() == 0) return from_host(HostArray::uninitialized(std::move(type)), line.where());
  if (copy == false && !(dense && aligned))
    raise_buffer_error(cat("the array is ", dense ? "not aligned to its elements" : "strided",
                           ", so it must be copied, but copy is False"));
  if (dense && aligned && copy != true)
    return from_host(HostArray::borrow(std::move(type), data, [owner]() mutable { owner.reset(); }),
                     line.where());
  HostArray copied = [&] {
    Unlocked unlocked;
    if (dense) return HostArray::copy_of(std::move(type), data);
    HostArray made = HostArray::uninitialized(std::move(type));
    copy_strided(array, data, element, made);
    return made;
  }();
  return from_host(std::move(copied), line.where());
}

}  // namespace

void bind_dlpack(nb::module_& module) {
  module.def("dlpack_export", export_tensor, nb::arg("tensor"), nb::arg("stream").none(),
             nb::arg("max_version").none(), nb::arg("dl_device").none(), nb::arg("copy").none());
  module.def("dlpack_import", import_capsule, nb::arg("capsule"), nb::arg("copy").none());
}

}  // namespace meshard::python

#include "python/bindings/arrays/read_part.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/core.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/storage.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/runtime/device_array.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/waiting.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// Values on devices up to this size are copied to the host for one element.
constexpr std::int64_t kMostBytes = 1 << 16;
// Parts of values on the host are copied up to this size. Larger ones are recorded, so that a
// program may take them from a value that it uses anyway.
constexpr std::int64_t kMostPartBytes = 1 << 24;

// The elements first[d] + i * step[d] of each dimension d; without steps a reshape.
struct PartStep {
  Dimensions first, step;
  Shape shape;
};

// Where the elements of a tensor are. An attribute of its object, so that the whole value is kept
// no longer than the object. The node tells whether the object was bound to another value since.
struct Part {
  const Node* node = nullptr;
  std::uint64_t id = 0;
  Value whole;
  std::vector<PartStep> steps;  // from the part to the whole
};

constexpr const char* kAttribute = "_part";

PyObject* attribute_name() {
  static PyObject* name = PyUnicode_InternFromString(kAttribute);
  return name;
}

bool is_step(std::string_view op) { return op == "slice" || op == "reshape" || op == "flip"; }

const Part* part_in(PyObject* object) {
  const Value& value = tensor_in(object)->value();
  // Asking for an attribute that is not there takes longer than recording an op.
  if (!is_step(value.node()->op().name)) return nullptr;
  nb::object capsule = nb::steal(PyObject_GetAttr(object, attribute_name()));
  if (!capsule) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* part = static_cast<const Part*>(PyCapsule_GetPointer(capsule.ptr(), kAttribute));
  if (!part) PyErr_Clear();
  return part && part->node == value.node() && part->id == value->id() ? part : nullptr;
}

bool add_step(const Node& node, std::vector<PartStep>& steps) {
  const std::string_view name = node.op().name;
  PartStep made{{}, {}, node.type().shape};
  const auto rank = static_cast<std::size_t>(made.shape.rank());
  if (name == "slice") {
    const auto& taken = node.attributes_as<SliceAttributes>();
    made.first = taken.start;
    made.step = taken.stride.empty() ? Dimensions(rank, 1) : taken.stride;
  } else if (name == "flip") {
    made.first = Dimensions(rank, 0);
    made.step = Dimensions(rank, 1);
    for (std::int64_t d : node.attributes_as<FlipAttributes>().dimensions) {
      made.first[static_cast<std::size_t>(d)] = made.shape[d] - 1;
      made.step[static_cast<std::size_t>(d)] = -1;
    }
  } else if (name != "reshape") {
    return false;
  }
  steps.push_back(std::move(made));
  return true;
}

HostArray taken(const HostArray& from, const PartStep& part) {
  if (part.step.empty()) return from.reshaped(part.shape);
  if (std::all_of(part.step.begin(), part.step.end(),
                  [](std::int64_t step) { return step == 1; })) {
    Box box;
    for (int d = 0; d < from.rank(); ++d) {
      const std::int64_t first = part.first[static_cast<std::size_t>(d)];
      box.push_back({first, first + part.shape[d]});
    }
    return from.slice(box);
  }
  HostArray made = HostArray::uninitialized({from.dtype(), part.shape});
  const auto element = static_cast<std::int64_t>(size_in_bytes(from.dtype()));
  const auto rank = static_cast<std::size_t>(from.rank());
  Dimensions strides(rank, element), at(rank, 0);
  for (std::size_t d = rank; d-- > 1;)
    strides[d - 1] = strides[d] * from.shape()[static_cast<std::int64_t>(d)];
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < rank; ++d) offset += part.first[d] * strides[d];
  std::byte* to = made.mutable_bytes();
  for (std::int64_t i = 0; i < made.size(); ++i) {
    std::memcpy(to + i * element, from.bytes() + offset, static_cast<std::size_t>(element));
    for (std::size_t d = rank; d-- > 0;) {
      offset += part.step[d] * strides[d];
      if (++at[d] < part.shape[static_cast<std::int64_t>(d)]) break;
      offset -= at[d] * part.step[d] * strides[d];
      at[d] = 0;
    }
  }
  return made;
}

HostArray elements(const Tensor& whole, const std::vector<PartStep>& steps,
                   const SourceLocation& where) {
  HostArray array = whole.to_host(where);
  for (std::size_t i = steps.size(); i-- > 0;) array = taken(array, steps[i]);
  return array;
}

// True if the whole value is computed and taking the part from it on the host is quick.
bool is_quick(const Value& whole, const Value& part) {
  const Storage* storage = whole.storage();
  if (!storage || storage->kind() == Storage::Kind::kAbstract) return false;
  return whole.type().bytes() <= kMostBytes ||
         (storage->kind() == Storage::Kind::kHost && part.type().bytes() <= kMostPartBytes);
}

// True if the value is on the host, or on one device and not still being computed.
bool is_readable_now(const Storage& storage) {
  if (storage.kind() == Storage::Kind::kHost) return true;
  const auto& array = static_cast<const DeviceArray&>(storage);
  if (!array.is_live() || array.num_shards() != 1) return false;
  Result<pjrt::Event> event = array.buffers()[0].ready_event();
  return event.ok() && event->is_ready().value_or(false);
}

}  // namespace

nb::object part_object(PyObject* whole, Tensor part, const SourceLocation& where) {
  const Value& from = tensor_in(whole)->value();
  const Value& value = part.value();
  if (only_recording() || internal::recorder().manual || value == from)
    return tensor_object(std::move(part));
  const Part* inner = from.storage() ? nullptr : part_in(whole);
  if (!inner && !from.storage()) return tensor_object(std::move(part));
  auto made =
      std::make_unique<Part>(Part{value.node(), value->id(), inner ? inner->whole : from, {}});
  if (!is_quick(made->whole, value)) return tensor_object(std::move(part));
  for (const Node* node = made->node; node != from.node(); node = node->operands()[0].node())
    if (node->operands().size() != 1 || !add_step(*node, made->steps))
      return tensor_object(std::move(part));
  if (inner) made->steps.insert(made->steps.end(), inner->steps.begin(), inner->steps.end());
  if (is_unplaced(made->whole) && is_readable_now(*made->whole.storage())) {
    Unlocked unlocked;
    part = from_host(elements(Tensor(made->whole), made->steps, where), where);
  }
  nb::object object = tensor_object(std::move(part));
  if (tensor_in(object.ptr())->value().storage()) return object;
  nb::object capsule = nb::steal(PyCapsule_New(made.get(), kAttribute, [](PyObject* self) {
    delete static_cast<Part*>(PyCapsule_GetPointer(self, kAttribute));
  }));
  if (!capsule) nb::raise_python_error();
  (void)made.release();  // the capsule has it
  if (PyObject_SetAttr(object.ptr(), attribute_name(), capsule.ptr()) != 0)
    nb::raise_python_error();
  return object;
}

std::optional<HostArray> read_part(PyObject* part, const SourceLocation& where) {
  const Tensor& tensor = *tensor_in(part);
  if (!tensor.defined() || tensor.value().storage()) return std::nullopt;
  const Part* found = part_in(part);
  if (!found) return std::nullopt;
  const Tensor whole(found->whole);
  const std::vector<PartStep> steps = found->steps;  // another thread may bind the object anew
  const Storage* storage = whole.value().storage();
  if (!storage || storage->kind() == Storage::Kind::kDevice) wait_for({&whole, 1}, where);
  Unlocked unlocked;
  return elements(whole, steps, where);
}

}  // namespace meshard::python

#include "python/bindings/read_part.h"

#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/core.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/storage.h"

namespace meshard::python {
namespace {

// Values up to this size are copied to the host for one element.
constexpr std::int64_t kMostBytes = 1 << 16;

// The elements first[d] + i * step[d] of each dimension d; without steps a reshape.
struct PartStep {
  Dimensions first, step;
  Shape shape;
};

// The part is known by its node's address and number, without a reference: a value that only this
// table refers to would become a result of the next program.
struct Part {
  const Node* node = nullptr;
  std::uint64_t id = 0;
  Value whole;
  std::vector<PartStep> steps;  // from the part to the whole
};

struct RecentParts {
  std::array<Part, 16> all;
  std::size_t next = 0;

  const Part* find(const Value& value) const {
    for (const Part& part : all)
      if (part.node == value.node() && part.id == value->id()) return &part;
    return nullptr;
  }
};
thread_local RecentParts recent_parts;

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

}  // namespace

void remember_part(const Tensor& whole, const Tensor& part) {
  if (only_recording() || internal::recorder().manual || part.value() == whole.value()) return;
  Part made{part.value().node(), part.value()->id(), whole.value(), {}};
  if (const Part* inner = whole.value().storage() ? nullptr : recent_parts.find(whole.value()))
    made.whole = inner->whole;
  const Storage* storage = made.whole.storage();
  if (!storage || storage->kind() == Storage::Kind::kAbstract ||
      made.whole.type().bytes() > kMostBytes)
    return;
  for (const Node* node = made.node; node != whole.value().node();
       node = node->operands()[0].node())
    if (node->operands().size() != 1 || !add_step(*node, made.steps)) return;
  if (!(made.whole == whole.value())) {
    const Part* inner = recent_parts.find(whole.value());
    made.steps.insert(made.steps.end(), inner->steps.begin(), inner->steps.end());
  }
  recent_parts.all[recent_parts.next] = std::move(made);
  recent_parts.next = (recent_parts.next + 1) % recent_parts.all.size();
}

Tensor needed_to_read(const Tensor& part) {
  if (!part.defined() || part.value().storage()) return part;
  const Part* found = recent_parts.find(part.value());
  return found ? Tensor(found->whole) : part;
}

std::optional<HostArray> read_part(const Tensor& part, const SourceLocation& where) {
  if (!part.defined() || part.value().storage()) return std::nullopt;
  const Part* found = recent_parts.find(part.value());
  if (!found) return std::nullopt;
  HostArray array = Tensor(found->whole).to_host(where);
  for (std::size_t i = found->steps.size(); i-- > 0;) array = taken(array, found->steps[i]);
  return array;
}

}  // namespace meshard::python

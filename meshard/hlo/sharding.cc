#include "meshard/hlo/sharding.h"

#include <numeric>

#include "meshard/hlo/internal/reader.h"

namespace meshard {
namespace {

using pjrt::WireField;
using pjrt::WireReader;

}  // namespace

namespace internal {
namespace {

constexpr int kMostNesting = 32;  // of tuples; damaged bytes could nest without limit

bool numbers(const WireField& field, std::vector<std::int64_t>& to) {
  return append_numbers(field, to);
}

Result<HloNamedSharding::DimensionSharding> read_dimension(std::string_view bytes) {
  HloNamedSharding::DimensionSharding dimension;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(HloAxisRef axis, read_axis_ref(field->bytes));
      dimension.axes.push_back(axis);
    }
    if (field->number == 2) dimension.is_closed = field->as_bool();
  }
  if (!reader.ok()) return damaged("a dimension's sharding");
  return dimension;
}

}  // namespace

Error damaged(std::string_view what) {
  return Error(ErrorCode::kDataLoss, cat("[hlo] the bytes of ", what, " are damaged"));
}

Result<HloMesh> read_mesh(std::string_view bytes) {
  HloMesh mesh;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      HloMesh::Axis axis;
      axis.size = 0;
      WireReader inner(field->bytes);
      while (auto part = inner.next()) {
        if (part->number == 1) axis.name = part->bytes;
        if (part->number == 2) axis.size = part->as_int();
      }
      if (!inner.ok() || axis.size < 1) return damaged("a mesh axis");
      mesh.axes.push_back(std::move(axis));
    }
    if (field->number == 2 && !numbers(*field, mesh.device_ids)) return damaged("a mesh");
    if (field->number == 3) mesh.unknown_order = true;
  }
  if (!reader.ok()) return damaged("a mesh");
  return mesh;
}

Result<HloAxisRef> read_axis_ref(std::string_view bytes) {
  HloAxisRef axis;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) axis.axis = field->as_int();
    if (field->number != 2) continue;
    HloAxisRef::Part part{0, 0};
    WireReader inner(field->bytes);
    while (auto number = inner.next()) {
      if (number->number == 1) part.pre_size = number->as_int();
      if (number->number == 2) part.size = number->as_int();
    }
    if (!inner.ok() || part.pre_size < 1 || part.size < 1) return damaged("a part of an axis");
    axis.part = part;
  }
  if (!reader.ok()) return damaged("an axis");
  return axis;
}

Result<HloNamedSharding> read_named_sharding(std::string_view bytes, int depth) {
  if (depth > kMostNesting) return damaged("a named sharding");
  HloNamedSharding sharding;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    std::vector<HloAxisRef>* axes = nullptr;
    switch (field->number) {
      case 1: {
        MESHARD_ASSIGN_OR_RETURN(auto part, read_named_sharding(field->bytes, depth + 1));
        sharding.tuple.push_back(std::move(part));
        break;
      }
      case 2: {
        MESHARD_ASSIGN_OR_RETURN(sharding.mesh, read_mesh(field->bytes));
        break;
      }
      case 3: {
        MESHARD_ASSIGN_OR_RETURN(auto dimension, read_dimension(field->bytes));
        sharding.dimensions.push_back(std::move(dimension));
        break;
      }
      case 4: axes = &sharding.replicated; break;
      case 5: axes = &sharding.unreduced; break;
      case 7: axes = &sharding.manual; break;
      default: break;
    }
    if (axes == nullptr) continue;
    MESHARD_ASSIGN_OR_RETURN(HloAxisRef axis, read_axis_ref(field->bytes));
    axes->push_back(axis);
  }
  if (!reader.ok()) return damaged("a named sharding");
  return sharding;
}

Result<HloSharding> read_op_sharding(std::string_view bytes, int depth) {
  if (depth > kMostNesting) return damaged("a sharding");
  HloSharding sharding;
  std::vector<std::int64_t> kinds;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 1: sharding.kind = static_cast<HloSharding::Kind>(field->value); break;
      case 3: good = numbers(*field, sharding.tile_dimensions); break;
      case 4: good = numbers(*field, sharding.listed_devices); break;
      case 5: {
        MESHARD_ASSIGN_OR_RETURN(auto part, read_op_sharding(field->bytes, depth + 1));
        sharding.tuple.push_back(std::move(part));
        break;
      }
      case 6: sharding.replicate_on_last_tile_dimension = field->as_bool(); break;
      case 8: good = numbers(*field, kinds); break;
      case 9: good = numbers(*field, sharding.iota.dimensions); break;
      case 10: good = numbers(*field, sharding.iota.permutation); break;
      case 14: {
        MESHARD_ASSIGN_OR_RETURN(sharding.named, read_named_sharding(field->bytes));
        break;
      }
      default: break;
    }
    if (!good) return damaged("a sharding");
  }
  if (!reader.ok()) return damaged("a sharding");
  for (std::int64_t kind : kinds)
    sharding.last_tile_kinds.push_back(static_cast<HloSharding::Kind>(kind));
  return sharding;
}

}  // namespace internal

Result<std::vector<std::int64_t>> IotaOrder::expand() const {
  std::size_t rank = dimensions.size();
  std::vector<std::int64_t> order = permutation;
  if (order.empty()) {
    order.resize(rank);
    std::iota(order.begin(), order.end(), 0);
  }
  std::vector<bool> seen(rank);
  if (order.size() != rank) return internal::damaged("an iota order");
  for (std::int64_t from : order) {
    if (from < 0 || from >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(from)])
      return internal::damaged("an iota order");
    seen[static_cast<std::size_t>(from)] = true;
  }
  std::vector<std::int64_t> strides(rank);
  std::int64_t total = 1;
  for (std::size_t i = rank; i-- > 0;) {
    strides[i] = total;
    if (dimensions[i] < 1 || dimensions[i] > (std::int64_t{1} << 30) / total)
      return internal::damaged("an iota order");
    total *= dimensions[i];
  }
  std::vector<std::int64_t> result(static_cast<std::size_t>(total));
  std::vector<std::int64_t> at(rank);
  for (std::int64_t& value : result) {
    value = 0;
    for (std::size_t i = 0; i < rank; ++i)
      value += at[i] * strides[static_cast<std::size_t>(order[i])];
    for (std::size_t i = rank; i-- > 0;) {
      if (++at[i] < dimensions[static_cast<std::size_t>(order[i])]) break;
      at[i] = 0;
    }
  }
  return result;
}

Result<std::vector<std::int64_t>> HloSharding::devices() const {
  if (!listed_devices.empty()) return listed_devices;
  if (!iota.given()) return std::vector<std::int64_t>();
  return iota.expand();
}

std::string HloSharding::to_string() const {
  auto name = [](Kind which) -> std::string {
    switch (which) {
      case Kind::kReplicated: return "replicated";
      case Kind::kMaximal: return "maximal";
      case Kind::kManual: return "manual";
      case Kind::kUnknown: return "unknown";
      case Kind::kUnreduced: return "unreduced";
      default: return "other";
    }
  };
  switch (kind) {
    case Kind::kTuple: return cat("{", join(tuple, ", "), "}");
    case Kind::kMaximal:
      return cat("{maximal device=", listed_devices.empty() ? 0 : listed_devices[0], "}");
    case Kind::kOther: break;
    default: return cat("{", name(kind), "}");
  }
  std::string text = cat("{devices=[", join(tile_dimensions, ","), "]");
  if (!listed_devices.empty()) {
    text += join(listed_devices, ",");
  } else {
    text += cat("<=[", join(iota.dimensions, ","), "]");
    bool moved = false;
    for (std::size_t i = 0; i < iota.permutation.size(); ++i)
      moved |= iota.permutation[i] != static_cast<std::int64_t>(i);
    if (moved) text += cat("T(", join(iota.permutation, ","), ")");
  }
  if (replicate_on_last_tile_dimension) text += " last_tile_dim_replicate";
  if (!last_tile_kinds.empty()) {
    std::vector<std::string> names;
    for (Kind kind_of_tile : last_tile_kinds) names.push_back(name(kind_of_tile));
    text += cat(" last_tile_dims={", join(names, ", "), "}");
  }
  return text + "}";
}

Result<HloSharding> HloSharding::from_bytes(std::string_view bytes) {
  return internal::read_op_sharding(bytes);
}

}  // namespace meshard

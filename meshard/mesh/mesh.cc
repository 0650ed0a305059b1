#include "meshard/mesh/mesh.h"

#include <cctype>

#include "meshard/base/fingerprint.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/mesh/axis_groups.h"

namespace meshard {
namespace {

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

void check_axes(const std::vector<MeshAxis>& axes, SourceLocation where) {
  std::int64_t size = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const MeshAxis& axis = axes[i];
    if (axis.name.empty()) throw_invalid(where, "[mesh] the name of axis ", i, " is empty");
    if (!is_identifier(axis.name))
      throw_invalid(where, "[mesh] the name of axis ", i, ", \"", axis.name,
                    "\", is not an identifier (letters, digits and _, not beginning with a digit)");
    if (axis.size < 1)
      throw_invalid(where, "[mesh] axis \"", axis.name, "\" has size ", axis.size,
                    "; the least is 1");
    for (std::size_t j = 0; j < i; ++j)
      if (axes[j].name == axis.name)
        throw_invalid(where, "[mesh] axis name \"", axis.name, "\" is used twice: by axes ", j,
                      " and ", i);
    if (__builtin_mul_overflow(size, axis.size, &size))
      throw_invalid(where, "[mesh] the number of devices does not fit 64 bits at axis \"",
                    axis.name, "\" = ", axis.size);
  }
}

std::int64_t device_count(const std::vector<MeshAxis>& axes, SourceLocation where) {
  check_axes(axes, where);
  std::int64_t size = 1;
  for (const MeshAxis& axis : axes) size *= axis.size;
  return size;
}

RankMap listed_at(std::vector<std::int64_t> ids, std::int64_t wanted, SourceLocation where) {
  if (static_cast<std::int64_t>(ids.size()) != wanted)
    throw_invalid(where, "[mesh] ", ids.size(), " device ids for ", wanted,
                  " positions (the product of the axis sizes)");
  try {
    return RankMap::listed(std::move(ids));
  } catch (const Error& error) {
    throw error.at(where);
  }
}

}  // namespace

Mesh::Mesh() {
  static const Mesh alone(std::vector<MeshAxis>{}, SourceLocation{});
  state_ = alone.state_;
}

Mesh::Mesh(std::vector<MeshAxis> axes, SourceLocation where)
    : Mesh(axes, RankMap::identity(device_count(axes, where)), where) {}

Mesh::Mesh(std::vector<MeshAxis> axes, std::vector<std::int64_t> device_ids, SourceLocation where)
    : Mesh(axes, listed_at(std::move(device_ids), device_count(axes, where), where), where) {}

Mesh::Mesh(std::vector<MeshAxis> axes, RankMap rank_map, SourceLocation where) {
  std::int64_t size = device_count(axes, where);
  if (size != rank_map.size())
    throw_invalid(where, "[mesh] ", rank_map.size(), " device ids for ", size,
                  " positions (the product of the axis sizes)");
  IntVector sizes;
  std::size_t hash = rank_map.hash();
  for (const MeshAxis& axis : axes) {
    sizes.push_back(axis.size);
    hash = hash_combine(hash, std::hash<std::string>()(axis.name));
    hash = hash_combine(hash, static_cast<std::size_t>(axis.size));
  }
  state_ = std::make_shared<const State>(
      State{std::move(axes), Layout(IntTuple::flat(sizes)), std::move(rank_map), hash});
}

std::optional<std::size_t> Mesh::find_axis(std::string_view name) const {
  for (std::size_t i = 0; i < axes().size(); ++i)
    if (axes()[i].name == name) return i;
  return std::nullopt;
}

std::size_t Mesh::axis_index(std::string_view name) const {
  if (std::optional<std::size_t> index = find_axis(name)) return *index;
  std::string known;
  for (const MeshAxis& axis : axes()) append(known, cat(known.empty() ? "" : ", ", axis.name));
  throw Error(ErrorCode::kNotFound, cat("[mesh] no axis \"", name, "\"; the mesh has ",
                                        known.empty() ? "no axes" : cat("the axes ", known)));
}

std::int64_t Mesh::axis_size(const AxisRef& axis) const {
  std::int64_t whole = axes()[axis_index(axis.name)].size;
  if (axis.is_whole()) return whole;
  if (axis.pre_size < 1 || axis.size < 1 || whole % axis.pre_size != 0 ||
      whole / axis.pre_size % axis.size != 0)
    throw_invalid({}, "[mesh] sub-axis ", axis, " does not divide its axis of size ", whole, " in ",
                  *this);
  return axis.size;
}

void Mesh::position_error(std::int64_t position) const {
  throw Error(ErrorCode::kOutOfRange,
              cat("[mesh] position ", position, " is not in ", *this, " of ", size(), " devices"));
}

std::int64_t Mesh::device_id(std::int64_t position) const {
  check_position(position);
  return state_->rank_map[position];
}

DeviceIds Mesh::device_ids() const { return DeviceIds(*this); }

std::optional<IntVector> Mesh::coordinate(std::int64_t device_id) const {
  std::optional<std::int64_t> found = position(device_id);
  if (!found) return std::nullopt;
  return coordinate_at(*found);
}

IntVector Mesh::coordinate_at(std::int64_t position) const {
  check_position(position);
  IntVector coordinate(shape());
  for (std::size_t i = coordinate.size(); i-- > 0;) {
    std::int64_t size = coordinate[i];
    coordinate[i] = position % size;
    position /= size;
  }
  return coordinate;
}

std::vector<std::int64_t> Mesh::group(const AxisList& axes, std::int64_t position) const {
  check_position(position);
  AxisGroups groups(*this, axes);
  return groups.group(groups.group_of(position));
}

bool Mesh::equal_state(const Mesh& other) const {
  return state_->hash == other.state_->hash && state_->axes == other.state_->axes &&
         state_->rank_map == other.state_->rank_map;
}

std::string Mesh::to_string() const {
  std::string out = "mesh<";
  for (std::size_t i = 0; i < axes().size(); ++i)
    append(out, cat(i == 0 ? "" : ", ", axes()[i].name, '=', axes()[i].size));
  if (!rank_map().is_identity()) append(out, cat(rank() == 0 ? "" : "; ", "devices=", rank_map()));
  return out + ">";
}

Mesh Mesh::read(TextScanner& scanner) {
  scanner.expect("mesh");
  scanner.expect("<");
  std::vector<MeshAxis> axes;
  std::optional<RankMap> map;
  while (!scanner.accept(">")) {
    if (scanner.accept(";") || (axes.empty() && scanner.peek("devices=["))) {
      scanner.expect("devices");
      scanner.expect("=");
      map = RankMap::read(scanner);
      scanner.expect(">");
      break;
    }
    if (!axes.empty()) scanner.expect(",");
    std::string name = scanner.identifier();
    scanner.expect("=");
    axes.push_back({std::move(name), scanner.integer()});
  }
  return map ? Mesh(std::move(axes), *map, {}) : Mesh(std::move(axes), SourceLocation{});
}

Result<Mesh> Mesh::parse(std::string_view text) {
  return parse_whole("mesh", text, [](TextScanner& scanner) { return read(scanner); });
}

}  // namespace meshard

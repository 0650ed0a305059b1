#include "meshard/mesh/axis_ref.h"

#include <functional>
#include <limits>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/base/fingerprint.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

// The part of an axis that an AxisRef covers, as a range of pre-sizes: [begin, end).
struct Extent {
  std::int64_t begin;
  std::int64_t end;
};

Extent extent(const AxisRef& axis) {
  if (axis.is_whole()) return {1, std::numeric_limits<std::int64_t>::max()};
  return {axis.pre_size, axis.pre_size * axis.size};
}

bool same_axis(const AxisRef& a, const AxisRef& b) {
  return a.name == b.name && a.position == b.position;
}

}  // namespace

AxisRef::AxisRef(const char* axis) : name(axis == nullptr ? "" : axis) {}

std::int64_t AxisRef::checked_position(std::int64_t position, SourceLocation where) {
  if (position < 0)
    throw_invalid(where, "[mesh] axis position ", position,
                  " is negative: the axes of a mesh are counted from 0");
  return position;
}

bool AxisRef::contains(const AxisRef& other) const {
  Extent mine = extent(*this), theirs = extent(other);
  return same_axis(*this, other) && mine.begin <= theirs.begin && theirs.end <= mine.end;
}

bool AxisRef::overlaps(const AxisRef& other) const {
  Extent mine = extent(*this), theirs = extent(other);
  return same_axis(*this, other) && mine.begin < theirs.end && theirs.begin < mine.end;
}

bool AxisRef::is_prefix_of(const AxisRef& other) const {
  return other.contains(*this) && pre_size == other.pre_size;
}

std::string AxisRef::to_string() const {
  if (is_position()) return cat(position);
  if (is_whole()) return cat('"', name, '"');
  return cat('"', name, "\":(", pre_size, ')', size);
}

AxisRef AxisRef::read(TextScanner& scanner) {
  if (scanner.peek_integer()) {
    std::int64_t position = scanner.integer();
    if (position < 0) scanner.fail("an axis position cannot be negative");
    return AxisRef(position);
  }
  AxisRef axis(scanner.quoted());
  if (!scanner.accept(":")) return axis;
  scanner.expect("(");
  axis.pre_size = scanner.integer();
  scanner.expect(")");
  axis.size = scanner.integer();
  if (axis.pre_size < 1 || axis.size < 2)
    scanner.fail("a sub-axis needs a pre-size of at least 1 and a size of at least 2");
  return axis;
}

Result<AxisRef> AxisRef::parse(std::string_view text) {
  return parse_whole("axis", text, [](TextScanner& scanner) { return read(scanner); });
}

std::size_t AxisRef::hash() const {
  std::size_t seed = std::hash<std::string>()(name);
  seed = hash_combine(seed, static_cast<std::size_t>(pre_size));
  if (is_position()) seed = hash_combine(seed, static_cast<std::size_t>(position));
  return hash_combine(seed, static_cast<std::size_t>(size));
}

std::string to_string(const AxisList& axes) { return cat('{', join(axes, ", "), '}'); }

}  // namespace meshard

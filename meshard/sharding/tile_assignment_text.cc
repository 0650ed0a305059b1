// The text of a tile assignment, printed and parsed.
#include <numeric>
#include <optional>

#include "meshard/layout/text_scanner.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

constexpr TileKind kWords[] = {TileKind::kReplicated, TileKind::kManual, TileKind::kUnknown,
                               TileKind::kUnreduced};

std::optional<TileKind> read_word(TextScanner& scanner) {
  for (TileKind kind : kWords)
    if (scanner.accept(to_string(kind))) return kind;
  return std::nullopt;
}

std::vector<std::int64_t> read_numbers(TextScanner& scanner, std::string_view open_with,
                                       std::string_view close_with) {
  std::vector<std::int64_t> numbers;
  scanner.expect(open_with);
  scanner.list(close_with, [&] { numbers.push_back(scanner.integer()); });
  return numbers;
}

void read_devices(TextScanner& scanner, TileAssignment& tiles) {
  tiles.dims = read_numbers(scanner, "[", "]");
  if (!scanner.accept("<=")) {
    do {
      tiles.devices.push_back(scanner.integer());
    } while (scanner.accept(","));
    return;
  }
  tiles.reshape_dims = read_numbers(scanner, "[", "]");
  if (scanner.accept("T")) {
    tiles.transpose_perm = read_numbers(scanner, "(", ")");
  } else {
    tiles.transpose_perm.resize(tiles.reshape_dims.size());
    std::iota(tiles.transpose_perm.begin(), tiles.transpose_perm.end(), std::int64_t{0});
  }
}

void read_subgroups(TextScanner& scanner, TileAssignment& tiles) {
  if (scanner.accept("last_tile_dims")) {
    scanner.expect("=");
    scanner.expect("{");
    scanner.list("}", [&] {
      std::optional<TileKind> kind = read_word(scanner);
      if (!kind) scanner.fail("expected the kind of a subgroup");
      tiles.last_tile_dims.push_back(*kind);
    });
  } else if (scanner.accept("last_tile_dim_replicate")) {
    tiles.replicate_on_last_tile_dim = true;
  }
}

}  // namespace

std::string TileAssignment::to_string() const {
  if (kind == TileKind::kMaximal) return cat("{maximal device=", join(devices, ","), '}');
  if (kind != TileKind::kTiled) return cat('{', meshard::to_string(kind), '}');
  std::string out = cat("{devices=[", join(dims, ","), ']');
  if (is_iota()) {
    append(out, cat("<=[", join(reshape_dims, ","), ']'));
    bool identity = true;
    for (std::size_t i = 0; i < transpose_perm.size(); ++i)
      identity = identity && transpose_perm[i] == static_cast<std::int64_t>(i);
    if (!identity) append(out, cat("T(", join(transpose_perm, ","), ')'));
  } else {
    append(out, join(devices, ","));
  }
  if (replicate_on_last_tile_dim) append(out, " last_tile_dim_replicate");
  if (!last_tile_dims.empty()) {
    append(out, " last_tile_dims={");
    for (std::size_t i = 0; i < last_tile_dims.size(); ++i)
      append(out, cat(i == 0 ? "" : ", ", meshard::to_string(last_tile_dims[i])));
    append(out, "}");
  }
  return out + "}";
}

TileAssignment TileAssignment::read(TextScanner& scanner) {
  TileAssignment tiles;
  scanner.expect("{");
  if (std::optional<TileKind> kind = read_word(scanner)) {
    tiles.kind = *kind;
  } else if (scanner.accept("maximal")) {
    scanner.expect("device");
    scanner.expect("=");
    tiles.kind = TileKind::kMaximal;
    tiles.devices = {scanner.integer()};
  } else {
    scanner.expect("devices");
    scanner.expect("=");
    tiles.kind = TileKind::kTiled;
    read_devices(scanner, tiles);
    read_subgroups(scanner, tiles);
  }
  scanner.expect("}");
  tiles.validate().value();
  return tiles;
}

Result<TileAssignment> TileAssignment::parse(std::string_view text) {
  return parse_whole("tile assignment", text, read);
}

}  // namespace meshard

// Tested in meshard/stablehlo/module_reader_test.cc.
#include "meshard/stablehlo/internal/bytecode_values.h"

#include <limits>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {
namespace {

// Encoding codes. Builtin: BuiltinDialectBytecode.td; vhlo: VhloBytecode.cpp; sdy:
// shardy/dialect/sdy/ir/bytecode.
enum BuiltinAttribute : std::uint64_t {
  kArray = 0,
  kDictionary = 1,
  kString = 2,
  kTypedString = 3,
  kFlatSymbol = 4,
  kType = 6,
  kInteger = 8,
  kCallSite = 10,
  kFileLine = 11,
  kFused = 12,
  kFusedWithMetadata = 13,
  kNameLocation = 14,
  kFileRange = 22,
};
enum VhloAttribute : std::uint64_t {
  kVhloArray = 1,
  kVhloBoolean = 2,
  kVhloDictionary = 6,
  kVhloInteger = 9,
  kVhloString = 14,
  kVhloType = 17,
};
enum SdyAttribute : std::uint64_t {
  kAxis = 1,
  kMesh = 2,
  kSubAxis = 3,
  kAxisRef = 4,
  kDimension = 5,
  kSharding = 6,
  kShardingWithUnreduced = 15,
  kShardingWithReduction = 17,
};
constexpr int kDeepestLocation = 50;
constexpr std::int64_t kDynamic = std::numeric_limits<std::int64_t>::min();

}  // namespace

bool names_reductions(const Bytecode& bytecode) {
  for (std::size_t i = 0; i < bytecode.num_attributes(); ++i) {
    const BytecodeEntry& entry = bytecode.attribute(i);
    if (entry.dialect == "sdy" && !entry.is_text &&
        ByteCursor(entry.bytes).number() == kShardingWithReduction)
      return true;
  }
  return false;
}

void BytecodeValues::work(std::uint64_t amount) {
  if (amount > work_left_) fail_bytecode("its attributes refer to each other too often");
  work_left_ -= amount;
}

std::optional<ByteCursor> BytecodeValues::open(const BytecodeEntry& entry, std::string_view dialect,
                                               std::uint64_t& code) {
  work(1);
  if (entry.is_text || entry.dialect != dialect) return std::nullopt;
  ByteCursor cursor(entry.bytes);
  code = cursor.number();
  return cursor;
}

std::vector<std::uint64_t> BytecodeValues::list(ByteCursor& cursor) {
  std::vector<std::uint64_t> numbers(cursor.count());
  work(numbers.size());
  for (std::uint64_t& number : numbers) number = cursor.number();
  return numbers;
}

std::string BytecodeValues::text(std::uint64_t attribute) {
  const BytecodeEntry& entry = bytecode_.attribute(attribute);
  std::string_view found;
  std::uint64_t code = 0;
  if (entry.is_text) {
    found = entry.bytes.substr(0, entry.bytes.find('\0'));
  } else if (auto builtin = open(entry, "builtin", code)) {
    if (code == kString || code == kTypedString) found = bytecode_.string(builtin->number());
    if (code == kFlatSymbol) {
      std::uint64_t name = builtin->number();
      std::uint64_t inner = 0;
      auto string = open(bytecode_.attribute(name), "builtin", inner);
      if (string && inner == kString) found = bytecode_.string(string->number());
    }
  } else if (auto vhlo = open(entry, "vhlo", code)) {
    if (code == kVhloString) found = bytecode_.string(vhlo->number());
  }
  work(found.size());
  return std::string(found);
}

std::optional<std::int64_t> BytecodeValues::integer(std::uint64_t attribute) {
  std::uint64_t code = 0;
  const BytecodeEntry& entry = bytecode_.attribute(attribute);
  if (auto builtin = open(entry, "builtin", code)) {
    if (code != kInteger) return std::nullopt;
    std::string type = type_text(builtin->number());
    // Values of up to eight bits are one byte; wider ones have their sign in the lowest bit.
    if (type == "i1" || type == "i8" || type == "ui8" || type == "si8") return builtin->byte();
    return builtin->signed_number();
  }
  if (auto vhlo = open(entry, "vhlo", code)) {
    if (code == kVhloBoolean) return static_cast<std::int64_t>(vhlo->number());
    if (code != kVhloInteger) return std::nullopt;
    vhlo->number();
    return vhlo->signed_number();
  }
  return std::nullopt;
}

std::vector<std::uint64_t> BytecodeValues::array(std::uint64_t attribute) {
  std::uint64_t code = 0;
  const BytecodeEntry& entry = bytecode_.attribute(attribute);
  if (auto builtin = open(entry, "builtin", code))
    return code == kArray ? list(*builtin) : std::vector<std::uint64_t>();
  if (auto vhlo = open(entry, "vhlo", code))
    return code == kVhloArray ? list(*vhlo) : std::vector<std::uint64_t>();
  return {};
}

BytecodeValues::Dictionary BytecodeValues::dictionary(std::uint64_t attribute) {
  std::uint64_t code = 0;
  const BytecodeEntry& entry = bytecode_.attribute(attribute);
  std::optional<ByteCursor> cursor = open(entry, "builtin", code);
  std::uint64_t wanted = kDictionary;
  if (!cursor) {
    cursor = open(entry, "vhlo", code);
    wanted = kVhloDictionary;
  }
  Dictionary entries;
  if (!cursor || code != wanted) return entries;
  std::size_t count = cursor->count();
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = text(cursor->number());
    entries.emplace_back(std::move(name), cursor->number());
  }
  return entries;
}

std::string BytecodeValues::location_name(std::uint64_t attribute) {
  std::uint64_t code = 0;
  auto cursor = open(bytecode_.attribute(attribute), "builtin", code);
  return cursor && code == kNameLocation ? text(cursor->number()) : std::string();
}

std::string BytecodeValues::location_place(std::uint64_t attribute, int depth) {
  std::uint64_t code = 0;
  auto cursor = open(bytecode_.attribute(attribute), "builtin", code);
  if (!cursor || depth > kDeepestLocation) return "";
  switch (code) {
    case kFileLine:
    case kFileRange: {
      std::string file = text(cursor->number());
      if (code == kFileRange && cursor->number() == 0) return file;
      return cat(file, ":", cursor->number());
    }
    case kNameLocation: cursor->number(); return location_place(cursor->number(), depth + 1);
    case kCallSite: return location_place(cursor->number(), depth + 1);
    case kFused:
    case kFusedWithMetadata:
      for (std::uint64_t part : list(*cursor))
        if (std::string place = location_place(part, depth + 1); !place.empty()) return place;
      return "";
    default: return "";
  }
}

std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>> BytecodeValues::function_type(
    std::uint64_t attribute) {
  std::uint64_t code = 0;
  const BytecodeEntry& entry = bytecode_.attribute(attribute);
  std::optional<std::uint64_t> type;
  if (auto builtin = open(entry, "builtin", code)) {
    if (code == kType) type = builtin->number();
  } else if (auto vhlo = open(entry, "vhlo", code)) {
    if (code == kVhloType) type = vhlo->number();
  }
  if (!type) fail_bytecode("a function has no type");
  const BytecodeEntry& function = bytecode_.type(*type);
  auto cursor = open(function, "builtin", code);
  constexpr std::uint64_t kBuiltinFunction = 2, kVhloFunction = 8;
  bool is_function = cursor && code == kBuiltinFunction;
  if (!cursor) {
    cursor = open(function, "vhlo", code);
    is_function = cursor && code == kVhloFunction;
  }
  if (!is_function) fail_bytecode("the type of a function is not a function type");
  std::vector<std::uint64_t> inputs = list(*cursor);
  return {std::move(inputs), list(*cursor)};
}

std::string BytecodeValues::tensor_text(ByteCursor& cursor, int depth, std::string_view encoding) {
  std::string out = "tensor<";
  std::size_t rank = cursor.count();
  work(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    std::int64_t size = cursor.signed_number();
    append(out, size == kDynamic ? "?x" : cat(size, "x"));
  }
  append(out, cat(type_text(cursor.number(), depth + 1), encoding, ">"));
  work(out.size());
  return out;
}

std::string BytecodeValues::builtin_type(std::uint64_t code, ByteCursor& cursor, int depth) {
  static constexpr std::string_view kFloats[] = {
      "tf32",          "f8E5M2", "f8E4M3",   "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ",
      "f8E4M3B11FNUZ", "f8E3M4", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN",   "f8E8M0FNU"};
  switch (code) {
    case 0: {
      std::uint64_t bits = cursor.number();
      static constexpr std::string_view kSigns[] = {"i", "si", "ui", "?"};
      return cat(kSigns[bits & 3], bits >> 2);
    }
    case 1: return "index";
    case 3: return "bf16";
    case 4: return "f16";
    case 5: return "f32";
    case 6: return "f64";
    case 9: return cat("complex<", type_text(cursor.number(), depth + 1), ">");
    case 2: return function_type_text(cursor, depth);
    case 12: return "none";
    case 13: return tensor_text(cursor, depth);
    case 14: {  // a tensor whose encoding comes first
      std::string encoding = encoding_text(cursor.number());
      return tensor_text(cursor, depth, encoding);
    }
    case 15: return cat("tuple<", types_text(cursor, depth), ">");
    default:
      return code >= 21 && code <= 32 ? std::string(kFloats[code - 21])
                                      : unknown_type("builtin", code);
  }
}

std::string BytecodeValues::types_text(ByteCursor& cursor, int depth) {
  std::string out;
  for (std::uint64_t type : list(cursor))
    append(out, cat(out.empty() ? "" : ", ", type_text(type, depth + 1)));
  return out;
}

std::string BytecodeValues::function_type_text(ByteCursor& cursor, int depth) {
  std::string inputs = types_text(cursor, depth);
  return cat("(", inputs, ") -> (", types_text(cursor, depth), ")");
}

std::string BytecodeValues::unknown_type(std::string_view dialect, std::uint64_t code) const {
  if (types_must_be_known_)
    fail_bytecode(
        cat("the type with the number ", code, " of the dialect `", dialect, "` is not known"));
  return "?";
}

// An encoding of a tensor: the limits of its sizes. Boundaries do without.
std::string BytecodeValues::encoding_text(std::uint64_t attribute) {
  return types_must_be_known_ ? cat(", ", attribute_text(attribute)) : std::string();
}

std::string BytecodeValues::vhlo_type(std::uint64_t code, ByteCursor& cursor, int depth) {
  static constexpr std::string_view kTypes[] = {
      "i1",       "?",        "bf16",     "f16",        "f32",        "f64",
      "f8E4M3FN", "f8E5M2",   "?",        "index",      "i4",         "i8",
      "i16",      "i32",      "i64",      "ui4",        "ui8",        "ui16",
      "ui32",     "ui64",     "?",        "?",          "?",          "?",
      "?",        "?",        "?",        "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ",
      "?",        "i2",       "ui2",      "none",       "tf32",       "f8E4M3",
      "f8E3M4",   "f4E2M1FN", "f6E2M3FN", "f6E3M2FN",   "f8E8M0FNU"};
  if (code == 1) return cat("complex<", type_text(cursor.number(), depth + 1), ">");
  if (code == 8) return function_type_text(cursor, depth);
  if (code == 20) return tensor_text(cursor, depth);
  if (code == 21) {
    std::string encoding = encoding_text(cursor.number());
    return tensor_text(cursor, depth, encoding);
  }
  if (code == 22) return "!stablehlo.token";
  if (code == 23) return cat("tuple<", types_text(cursor, depth), ">");
  std::string_view text = code < std::size(kTypes) ? kTypes[code] : "?";
  return text == "?" ? unknown_type("vhlo", code) : std::string(text);
}

std::string BytecodeValues::type_text(std::uint64_t type, int depth) {
  if (depth > 4) fail_bytecode("a type is nested too deeply");
  const BytecodeEntry& entry = bytecode_.type(type);
  if (entry.is_text) {
    work(entry.bytes.size());
    return std::string(entry.bytes.substr(0, entry.bytes.find('\0')));
  }
  std::uint64_t code = 0;
  if (auto builtin = open(entry, "builtin", code)) return builtin_type(code, *builtin, depth);
  if (auto vhlo = open(entry, "vhlo", code)) return vhlo_type(code, *vhlo, depth);
  if (auto stablehlo = open(entry, "stablehlo", code); stablehlo && code == 0)
    return "!stablehlo.token";
  return unknown_type(entry.dialect, code);
}

std::string BytecodeValues::known_type_text(std::uint64_t type) {
  types_must_be_known_ = true;
  return type_text(type);
}

ByteCursor BytecodeValues::open_sdy(std::uint64_t attribute, std::uint64_t code) {
  std::uint64_t found = 0;
  auto cursor = open(bytecode_.attribute(attribute), "sdy", found);
  if (!cursor || found != code) fail_bytecode("a part of a sharding has an unexpected kind");
  return *cursor;
}

std::string BytecodeValues::axis_text(std::uint64_t attribute) {
  ByteCursor cursor = open_sdy(attribute, kAxisRef);
  std::string_view name = bytecode_.string(cursor.number());
  work(name.size());
  std::string out = cat("\"", name, "\"");
  std::uint64_t part = cursor.number();
  if ((part & 1) == 0) return out;
  ByteCursor sizes = open_sdy(part >> 1, kSubAxis);
  std::int64_t before = sizes.signed_number();
  return cat(out, ":(", before, ")", sizes.signed_number());
}

std::string BytecodeValues::axes_text(ByteCursor& cursor) {
  std::string out;
  for (std::uint64_t axis : list(cursor))
    append(out, cat(out.empty() ? "" : ", ", axis_text(axis)));
  return out;
}

std::string BytecodeValues::dimension_text(std::uint64_t attribute) {
  ByteCursor cursor = open_sdy(attribute, kDimension);
  std::string axes = axes_text(cursor);
  bool closed = cursor.byte() != 0;
  std::uint64_t priority = cursor.number();
  return cat("{", axes,
             closed         ? ""
             : axes.empty() ? "?"
                            : ", ?",
             "}", priority & 1 ? cat("p", priority >> 1) : "");
}

std::string BytecodeValues::sharding_text(std::uint64_t attribute) {
  const BytecodeEntry& entry = bytecode_.attribute(attribute);
  if (entry.is_text) return text(attribute);
  std::uint64_t code = 0;
  auto cursor = open(entry, "sdy", code);
  if (!cursor ||
      (code != kSharding && code != kShardingWithUnreduced && code != kShardingWithReduction))
    return text(attribute);
  std::uint64_t mesh_attribute = cursor->number();
  std::string name = text(mesh_attribute);
  std::string out = "#sdy.sharding<";
  if (name.empty())
    append(out, cat("mesh", mesh("", mesh_attribute).text));
  else
    append_symbol(out, name);
  std::string dimensions;
  for (std::uint64_t dimension : list(*cursor))
    append(dimensions, cat(dimensions.empty() ? "" : ", ", dimension_text(dimension)));
  append(out, cat(", [", dimensions, "]"));
  std::string replicated = axes_text(*cursor);
  if (!replicated.empty()) append(out, cat(", replicated={", replicated, "}"));
  std::string unreduced = code == kSharding ? std::string() : axes_text(*cursor);
  std::string_view reduction;
  if (code == kShardingWithReduction) {
    static constexpr std::string_view kReductions[] = {"", "max", "min"};
    std::uint64_t number = static_cast<std::uint64_t>(cursor->signed_number());
    if (number >= std::size(kReductions))
      fail_bytecode(cat("the reduction ", number, " of a sharding is not known"));
    reduction = kReductions[number];
  }
  if (!unreduced.empty()) append(out, cat(", unreduced=", reduction, "{", unreduced, "}"));
  return out + ">";
}

ModuleMesh BytecodeValues::mesh(std::string name, std::uint64_t attribute) {
  ByteCursor cursor = open_sdy(attribute, kMesh);
  ModuleMesh mesh{.name = std::move(name), .text = "<[", .axes = {}, .device_ids = {}};
  for (std::uint64_t axis : list(cursor)) {
    ByteCursor fields = open_sdy(axis, kAxis);
    std::string_view axis_name = bytecode_.string(fields.number());
    work(axis_name.size());
    mesh.axes.emplace_back(axis_name, fields.signed_number());
    append(mesh.text,
           cat(mesh.axes.size() > 1 ? ", " : "", "\"", axis_name, "\"=", mesh.axes.back().second));
  }
  append(mesh.text, "]");
  std::size_t ids = cursor.count();
  work(ids);
  for (std::size_t i = 0; i < ids; ++i) {
    mesh.device_ids.push_back(cursor.signed_number());
    append(mesh.text, cat(i == 0 ? ", device_ids=[" : ", ", mesh.device_ids.back()));
  }
  append(mesh.text, ids > 0 ? "]>" : ">");
  return mesh;
}

}  // namespace meshard::stablehlo

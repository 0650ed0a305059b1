#include "tests/fake_plugin/program.h"

#include <cstdlib>
#include <map>

// The fake plugin has its own wire format code, to detect errors in meshard's codec.
namespace fake {
namespace {

struct ElementRow {
  const char* mlir;
  int element;
  int primitive;
  int64_t bytes;
};
constexpr ElementRow kElements[] = {
    {"i1", 1, 1, 1},     {"i8", 2, 2, 1},    {"i16", 3, 3, 2},
    {"i32", 4, 4, 4},    {"i64", 5, 5, 8},   {"ui8", 6, 6, 1},
    {"ui16", 7, 7, 2},   {"ui32", 8, 8, 4},  {"ui64", 9, 9, 8},
    {"f16", 10, 10, 2},  {"f32", 11, 11, 4}, {"f64", 12, 12, 8},
    {"bf16", 13, 16, 2}, {"i4", 21, 21, 1},  {"complex<f32>", 14, 15, 8},
};

using Meshes = std::map<std::string, std::vector<std::pair<std::string, int64_t>>>;

struct Cursor {
  std::string_view text;
  size_t at = 0;

  void skip_space() {
    while (at < text.size() && isspace(static_cast<unsigned char>(text[at]))) ++at;
  }
  bool eat(std::string_view word) {
    skip_space();
    if (text.substr(at, word.size()) != word) return false;
    at += word.size();
    return true;
  }
  // Returns the text up to the bracket that closes the one just consumed.
  std::string_view until_close(char open, char close) {
    size_t start = at;
    int depth = 1;
    bool quoted = false;
    for (; at < text.size(); ++at) {
      char c = text[at];
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == open) ++depth;
      if (c == close && !(c == '>' && at > 0 && text[at - 1] == '-') && --depth == 0)
        return text.substr(start, at++ - start);
    }
    return {};
  }
  int64_t number() {
    int64_t value = 0;
    while (at < text.size() && isdigit(static_cast<unsigned char>(text[at])))
      value = value * 10 + (text[at++] - '0');
    return value;
  }
};

Meshes parse_meshes(std::string_view module) {
  Meshes meshes;
  for (size_t at = module.find("sdy.mesh @"); at != module.npos;
       at = module.find("sdy.mesh @", at + 1)) {
    size_t name = at + 10;
    size_t end = module.find_first_of(" =", name);
    size_t open = module.find('[', end);
    size_t close = module.find(']', open);
    Cursor axes{module.substr(open + 1, close - open - 1)};
    auto& mesh = meshes[std::string(module.substr(name, end - name))];
    while (axes.eat("\"")) {
      size_t stop = axes.text.find('"', axes.at);
      std::string axis(axes.text.substr(axes.at, stop - axes.at));
      axes.at = stop + 1;
      axes.eat("=");
      mesh.emplace_back(axis, axes.number());
      axes.eat(",");
    }
  }
  return meshes;
}

bool parse_type(std::string_view text, Type& to) {
  Cursor cursor{text};
  while (cursor.at < text.size() && isdigit(static_cast<unsigned char>(text[cursor.at]))) {
    to.dims.push_back(cursor.number());
    if (!cursor.eat("x")) return false;
  }
  for (const ElementRow& row : kElements)
    if (text.substr(cursor.at) == row.mlir) {
      to.element = row.element;
      to.primitive = row.primitive;
      to.bytes = row.bytes;
      return true;
    }
  return false;
}

// An axis, or a part `(pre)size` of one, of a mesh whose devices are in row-major order.
Cut::Axis axis_of(const std::vector<std::pair<std::string, int64_t>>& mesh, std::string_view name) {
  Cut::Axis axis;
  bool found = false;
  for (const auto& [each, size] : mesh) {
    if (found) axis.stride *= size;
    if (each != name) continue;
    axis.size = size;
    found = true;
  }
  return found ? axis : Cut::Axis{};
}

// Divides each dimension by the sizes of its axes, if they divide it.
void cut_to_shard(std::string_view attributes, const Meshes& meshes, Type& type, Cut& cut) {
  size_t at = attributes.find("#sdy.sharding<@");
  if (at == attributes.npos) return;
  Cursor cursor{attributes, at + 15};
  size_t comma = attributes.find(',', cursor.at);
  auto mesh = meshes.find(std::string(attributes.substr(cursor.at, comma - cursor.at)));
  if (mesh == meshes.end()) return;
  cursor.at = attributes.find('[', comma) + 1;
  for (size_t d = 0; d < type.dims.size(); ++d) {
    int64_t& dim = type.dims[d];
    if (!cursor.eat("{")) return;
    Cursor axes{cursor.until_close('{', '}')};
    int64_t parts = 1;
    std::vector<Cut::Axis> cuts;
    while (axes.eat("\"")) {
      size_t stop = axes.text.find('"', axes.at);
      Cut::Axis axis = axis_of(mesh->second, axes.text.substr(axes.at, stop - axes.at));
      axes.at = stop + 1;
      if (axes.eat(":(")) {
        int64_t before = axes.number();
        axes.eat(")");
        int64_t size = axes.number();
        axis = {axis.stride * axis.size / (before * size), size};
      }
      parts *= axis.size;
      cuts.push_back(axis);
      axes.eat(",");
    }
    if (dim % parts == 0) {
      dim /= parts;
      cut.axes[d] = std::move(cuts);
    }
    cursor.eat(",");
  }
}

bool parse_value(Cursor& cursor, const Meshes& meshes, std::vector<Type>& types,
                 std::vector<Cut>& cuts, std::vector<int>* alias) {
  if (!cursor.eat("tensor<")) return false;
  Type type;
  if (!parse_type(cursor.until_close('<', '>'), type)) return false;
  int output = -1;
  Cut cut{type.dims, std::vector<std::vector<Cut::Axis>>(type.dims.size())};
  if (cursor.eat("{")) {
    std::string_view attributes = cursor.until_close('{', '}');
    cut_to_shard(attributes, meshes, type, cut);
    if (size_t at = attributes.find("tf.aliasing_output"); at != attributes.npos)
      output = atoi(std::string(attributes.substr(attributes.find('=', at) + 1)).c_str());
  }
  if (cursor.eat("loc(")) cursor.until_close('(', ')');
  types.push_back(type);
  cuts.push_back(std::move(cut));
  if (alias != nullptr) alias->push_back(output);
  return true;
}

// `module @step` or `module @"stage 0 forward"`; "fake" without a name.
std::string name_of(std::string_view module) {
  constexpr std::string_view kBefore = "module @";
  size_t at = module.find(kBefore);
  if (at == module.npos) return "fake";
  std::string_view rest = module.substr(at + kBefore.size());
  bool quoted = rest.starts_with('"');
  if (quoted) rest.remove_prefix(1);
  return std::string(rest.substr(0, rest.find_first_of(quoted ? "\"" : " {\n")));
}

bool parse_main(std::string_view module, Program& to) {
  size_t at = module.find("@main(");
  if (at == module.npos) return false;
  Meshes meshes = parse_meshes(module);
  Cursor cursor{module, at + 6};
  while (!cursor.eat(")")) {
    size_t colon = module.find(':', cursor.at);
    if (colon == module.npos) return false;
    cursor.at = colon + 1;
    if (!parse_value(cursor, meshes, to.parameters, to.parameter_cuts, &to.alias)) return false;
    cursor.eat(",");
  }
  if (!cursor.eat("->")) return true;
  if (!cursor.eat("(")) return parse_value(cursor, meshes, to.results, to.result_cuts, nullptr);
  while (!cursor.eat(")")) {
    if (!parse_value(cursor, meshes, to.results, to.result_cuts, nullptr)) return false;
    cursor.eat(",");
  }
  return true;
}

// ---- wire format -------------------------------------------------------------------------------

std::string varint(uint64_t n) {
  std::string out;
  for (; n >= 128; n >>= 7) out += static_cast<char>(n | 128);
  return out += static_cast<char>(n);
}
std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
std::string bytes(int field, const std::string& value) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}

struct Fields {
  std::string_view rest;
  bool bad = false;
  int field = 0;
  uint64_t value = 0;
  std::string_view body = {};

  uint64_t read_varint() {
    uint64_t result = 0;
    for (int shift = 0;; shift += 7) {
      if (rest.empty() || shift > 63) {
        bad = true;
        return 0;
      }
      auto byte = static_cast<unsigned char>(rest[0]);
      rest.remove_prefix(1);
      result |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return result;
    }
  }
  bool next() {
    if (rest.empty() || bad) return false;
    uint64_t tag = read_varint();
    field = static_cast<int>(tag >> 3);
    size_t size = 0;
    switch (tag & 7) {
      case 0: value = read_varint(); break;
      case 1: size = 8; break;
      case 2: size = read_varint(); break;
      case 5: size = 4; break;
      default: bad = true;
    }
    if (size > rest.size()) bad = true;
    if (bad) return false;
    body = rest.substr(0, size);
    rest.remove_prefix(size);
    return true;
  }
};

bool parse_options(std::string_view options, Program& to) {
  std::vector<std::vector<int64_t>> computations;
  Fields outer{options};
  while (outer.next()) {
    if (outer.field != 3) continue;
    Fields build{outer.body};
    while (build.next()) {
      if (build.field == 4) to.replicas = static_cast<int>(build.value);
      if (build.field == 5) to.partitions = static_cast<int>(build.value);
      if (build.field != 9) continue;
      Fields assignment{build.body};
      while (assignment.next()) {
        if (assignment.field != 3) continue;
        computations.emplace_back();
        Fields computation{assignment.body};
        while (computation.next()) {
          Fields packed{computation.body};
          while (!packed.rest.empty() && !packed.bad)
            computations.back().push_back(static_cast<int64_t>(packed.read_varint()));
        }
      }
    }
    if (build.bad) return false;
  }
  if (outer.bad || to.replicas < 1 || to.partitions < 1) return false;
  for (int r = 0; r < to.replicas; ++r)
    for (auto& computation : computations)
      if (r < static_cast<int>(computation.size()))
        to.device_ids.push_back(computation[static_cast<size_t>(r)]);
  return true;
}

std::string shape(const Type& type) {
  std::string dims;
  for (int64_t d : type.dims) dims += varint(static_cast<uint64_t>(d));
  return number(2, type.primitive) + bytes(3, dims);
}

}  // namespace

std::vector<int64_t> Cut::tile(int64_t device) const {
  std::vector<int64_t> index;
  for (const auto& of_dimension : axes) {
    int64_t i = 0;
    for (const Axis& axis : of_dimension) i = i * axis.size + device / axis.stride % axis.size;
    index.push_back(i);
  }
  return index;
}

std::string Program::optimized() const {
  std::string program_shape;
  std::string instructions;
  int64_t id = 1;
  for (const Type& type : parameters) {
    program_shape += bytes(1, shape(type));
    std::string one = bytes(1, "p" + std::to_string(id)) + bytes(2, "parameter") +
                      bytes(3, shape(type)) + number(9, id - 1) + number(35, id);
    instructions += bytes(2, one);
    ++id;
  }
  std::string result = number(2, 13);
  for (const Type& type : results) result += bytes(4, shape(type));
  if (has_collective)
    instructions += bytes(2, bytes(1, "ar") + bytes(2, "all-reduce") + number(35, id++));
  instructions += bytes(2, bytes(1, "t") + bytes(2, "tuple") + bytes(3, result) + number(35, id));
  program_shape += bytes(2, result);
  std::string aliases;
  for (size_t i = 0; i < alias.size(); ++i)
    if (alias[i] >= 0) {
      std::string entry = bytes(1, varint(static_cast<uint64_t>(alias[i])));
      if (i != 0) entry += number(2, static_cast<int64_t>(i));  // proto3 omits a 0
      aliases += bytes(1, entry + number(4, 1));
    }
  std::string module_bytes =
      bytes(1, "fake") + bytes(2, "main") +
      bytes(3, bytes(1, "main") + instructions + number(5, 7) + number(6, id)) +
      bytes(4, program_shape) + number(6, 7);
  if (!aliases.empty()) module_bytes += bytes(8, aliases);
  return bytes(1, module_bytes);
}

bool parse_program(std::string_view module, std::string_view options, Program& to,
                   std::string& error) {
  to = {};
  to.module = module;
  to.name = name_of(module);
  to.options = options;
  if (!parse_options(options, to)) {
    error = "the compile options are damaged";
    return false;
  }
  if (!parse_main(module, to)) {
    error = "cannot read the signature of @main";
    return false;
  }
  for (const char* name : {"stablehlo.all_reduce", "stablehlo.reduce", "stablehlo.dot_general"})
    to.has_collective |= to.partitions > 1 && module.find(name) != module.npos;
  return true;
}

}  // namespace fake

// Tested in meshard/stablehlo/module_reader_test.cc.
#include "meshard/stablehlo/internal/bytecode.h"

#include <bit>
#include <limits>

#include "meshard/base/cat.h"

namespace meshard::stablehlo {
namespace {

constexpr std::uint8_t kAligned = 0x80;
constexpr std::size_t kStrings = 0, kDialects = 1, kEntries = 2, kEntryOffsets = 3, kProperties = 8;

}  // namespace

void fail_bytecode(std::string_view what) {
  throw Error(ErrorCode::kDataLoss, cat("[read_module] cannot read the MLIR bytecode: ", what));
}

std::uint8_t ByteCursor::byte() {
  if (at_end()) fail_bytecode(cat("it ends at byte ", position_, " of a section"));
  return static_cast<std::uint8_t>(bytes_[position_++]);
}

std::uint64_t ByteCursor::number() {
  std::uint8_t first = byte();
  int more = first == 0 ? 8 : std::countr_zero(first);
  std::uint64_t value = first;
  if (first == 0) {
    for (int i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(byte()) << (8 * i);
    return value;
  }
  for (int i = 1; i <= more; ++i) {
    std::uint64_t next = byte();
    if (i < 8) value |= next << (8 * i);
  }
  return value >> (more + 1);
}

std::size_t ByteCursor::count() {
  std::uint64_t value = number();
  if (value > bytes_.size() - position_)
    fail_bytecode(cat("a list of ", value, " entries in ", bytes_.size() - position_, " bytes"));
  return static_cast<std::size_t>(value);
}

std::int64_t ByteCursor::signed_number() {
  std::uint64_t value = number();
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

std::string_view ByteCursor::take(std::size_t size) {
  if (size > bytes_.size() - position_)
    fail_bytecode(cat("it needs ", size, " bytes where ", bytes_.size() - position_, " are left"));
  std::string_view part = bytes_.substr(position_, size);
  position_ += size;
  return part;
}

std::string_view ByteCursor::zero_terminated() {
  std::size_t end = bytes_.find('\0', position_);
  if (end == std::string_view::npos) fail_bytecode("a string is not terminated");
  std::string_view text = bytes_.substr(position_, end - position_);
  position_ = end + 1;
  return text;
}

std::string_view read_nested_section(ByteCursor& cursor, std::uint8_t* id) {
  std::uint8_t head = cursor.byte();
  if (id) *id = head & 0x7f;
  std::uint64_t length = cursor.number();
  if (head & kAligned) {
    std::uint64_t alignment = cursor.number();
    // Writers align to at most a page or two. Padding is relative to the start of the file, which
    // is where this cursor starts.
    if (!std::has_single_bit(alignment) || alignment > (1u << 20))
      fail_bytecode(cat("invalid alignment ", alignment));
    while (cursor.position() % alignment != 0) cursor.byte();
  }
  if (length > std::numeric_limits<std::size_t>::max() / 2) fail_bytecode("a section is too long");
  return cursor.take(static_cast<std::size_t>(length));
}

Bytecode::Bytecode(std::string_view bytes) : size_(bytes.size()) {
  ByteCursor cursor(bytes);
  if (!is_bytecode(cursor.take(bytes.size() < 4 ? bytes.size() : 4)))
    fail_bytecode("it does not begin with ML\\xEFR");
  version_ = cursor.number();
  if (version_ < 2 || version_ > 6)
    fail_bytecode(cat("its version is ", version_, ", but only versions 2 to 6 are supported"));
  cursor.zero_terminated();  // the producer
  while (!cursor.at_end()) {
    std::uint8_t id = 0;
    std::string_view part = read_nested_section(cursor, &id);
    if (id >= sections_.size()) fail_bytecode(cat("section ", int{id}, " is unknown"));
    sections_[id] = part;
  }
  read_strings();
  read_dialects();
  read_entries();
  read_properties();
  if (operations().empty()) fail_bytecode("it has no operations");
}

void Bytecode::fail_index(const char* what, std::uint64_t index, std::size_t size) {
  fail_bytecode(cat(what, " index ", index, " is out of range for size ", size));
}

void Bytecode::read_strings() {
  ByteCursor cursor(section(kStrings));
  std::vector<std::size_t> sizes(cursor.count());
  for (std::size_t& size : sizes) size = static_cast<std::size_t>(cursor.number());
  for (std::size_t i = sizes.size(); i > 0; --i) {  // lengths are stored in reverse order
    std::string_view text = cursor.take(sizes[i - 1]);
    if (text.empty() || text.back() != '\0') fail_bytecode("a string is not terminated");
    strings_.push_back(text.substr(0, text.size() - 1));
  }
}

void Bytecode::read_dialects() {
  ByteCursor cursor(section(kDialects));
  std::size_t dialects = cursor.count();
  for (std::size_t i = 0; i < dialects; ++i) {
    std::uint64_t name = cursor.number();
    dialects_.push_back(string(name >> 1));
    if (name & 1) read_nested_section(cursor);
  }
  if (version_ >= 4) cursor.number();  // the number of operation names
  while (!cursor.at_end()) {
    std::string_view dialect = at(dialects_, cursor.number(), "dialect");
    std::size_t names = cursor.count();
    for (std::size_t i = 0; i < names; ++i) {
      std::uint64_t name = cursor.number();
      std::string_view text = string(version_ >= 5 ? name >> 1 : name);
      // Real names are far below these limits. Without them, a few bytes could repeat one long
      // string many times.
      if (text.size() + dialect.size() > 512 || ops_.size() > 65536)
        fail_bytecode("an operation name is too long, or there are too many of them");
      ops_.push_back(cat(dialect, ".", text));
    }
  }
}

void Bytecode::read_entries() {
  ByteCursor cursor(section(kEntryOffsets));
  ByteCursor data(section(kEntries));
  std::size_t attributes = cursor.count(), types = cursor.count();
  while (!cursor.at_end()) {
    std::string_view dialect = at(dialects_, cursor.number(), "dialect");
    std::size_t entries = cursor.count();
    for (std::size_t i = 0; i < entries; ++i) {
      std::uint64_t size = cursor.number();
      BytecodeEntry entry{dialect, (size & 1) == 0, data.take(static_cast<std::size_t>(size >> 1))};
      (attributes_.size() < attributes ? attributes_ : types_).push_back(entry);
    }
  }
  if (attributes_.size() != attributes || types_.size() != types)
    fail_bytecode(cat("it lists ", attributes_.size(), " attributes and ", types_.size(),
                      " types, but declares ", attributes, " and ", types));
}

void Bytecode::read_properties() {
  if (section(kProperties).empty()) return;
  ByteCursor cursor(section(kProperties));
  std::size_t count = cursor.count();
  for (std::size_t i = 0; i < count; ++i)
    properties_.push_back(cursor.take(static_cast<std::size_t>(cursor.number())));
}

// The orders in which `values` values list their uses: for each that is not in the default order,
// its number (unless there is only one) and a list of indices, whose count has a flag.
static void skip_use_lists(ByteCursor& cursor, std::size_t values) {
  std::size_t listed = values > 1 ? cursor.count() : 1;
  for (; listed > 0; --listed) {
    if (values > 1) cursor.number();
    for (std::uint64_t left = cursor.number() >> 1; left > 0; --left) cursor.number();
  }
}

BytecodeOp Bytecode::read_op(ByteCursor& cursor) const {
  constexpr std::uint8_t kAttributes = 1, kResults = 2, kOperands = 4, kSuccessors = 8,
                         kRegions = 16, kUseLists = 32, kWithProperties = 64;
  auto skip_list = [&] {
    std::size_t count = cursor.count();
    for (std::size_t left = count; left > 0; --left) cursor.number();
    return count;
  };
  BytecodeOp op;
  op.name = op_name(cursor.number());
  std::uint8_t mask = cursor.byte();
  op.location = cursor.number();
  if (mask & kAttributes) op.attributes = cursor.number();
  if (mask & kWithProperties) op.properties = properties(cursor.number());
  if (mask & kResults) {
    op.result_types = cursor;
    op.result_types.count();
    op.results = skip_list();
  }
  op.operands = cursor;
  if (mask & kOperands) {
    op.operands.count();
    op.num_operands = skip_list();
  }
  if (mask & kSuccessors) skip_list();
  if (mask & kUseLists) skip_use_lists(cursor, op.results);
  if (mask & kRegions) {
    std::uint64_t regions = cursor.number();
    op.isolated = (regions & 1) != 0;
    op.regions = static_cast<std::size_t>(regions >> 1);
  }
  return op;
}

namespace {

// Regions in regions. The limit keeps damaged bytes from exhausting the stack.
constexpr int kDeepestOp = 200;

void visit_block(const Bytecode& bytecode, ByteCursor& cursor, int depth,
                 FunctionRef<void(const BytecodeOp&)> visit);

void visit_region(const Bytecode& bytecode, ByteCursor& cursor, int depth,
                  FunctionRef<void(const BytecodeOp&)> visit) {
  std::uint64_t blocks = cursor.number();
  if (blocks == 0) return;
  cursor.number();  // the number of values
  for (; blocks > 0; --blocks) visit_block(bytecode, cursor, depth, visit);
}

void visit_block(const Bytecode& bytecode, ByteCursor& cursor, int depth,
                 FunctionRef<void(const BytecodeOp&)> visit) {
  if (depth > kDeepestOp) fail_bytecode("regions are nested too deeply");
  std::vector<BytecodeArgument> arguments;
  for (std::size_t left = bytecode.read_block(cursor, arguments); left > 0; --left) {
    const BytecodeOp op = bytecode.read_op(cursor);
    visit(op);
    // The regions of an isolated op are one section.
    if (op.regions == 0) continue;
    std::optional<ByteCursor> inner;
    if (op.isolated) inner.emplace(read_nested_section(cursor));
    for (std::size_t i = 0; i < op.regions; ++i)
      visit_region(bytecode, inner ? *inner : cursor, depth + 1, visit);
  }
}

}  // namespace

void for_each_op(const Bytecode& bytecode, FunctionRef<void(const BytecodeOp&)> visit) {
  ByteCursor cursor(bytecode.operations());
  visit_block(bytecode, cursor, 0, visit);
}

std::size_t Bytecode::read_block(ByteCursor& cursor,
                                 std::vector<BytecodeArgument>& arguments) const {
  std::uint64_t head = cursor.number();
  arguments.clear();
  if (head & 1) {
    for (std::size_t left = cursor.count(); left > 0; --left) {
      // Since version 4, the lowest bit indicates whether a location follows.
      std::uint64_t type = cursor.number();
      bool is_located = version_ < 4 || (type & 1) != 0;
      arguments.push_back({version_ < 4 ? type : type >> 1,
                           is_located ? std::optional(cursor.number()) : std::nullopt});
    }
    if (version_ >= 3 && cursor.byte() != 0) skip_use_lists(cursor, arguments.size());
  }
  return static_cast<std::size_t>(head >> 1);
}

}  // namespace meshard::stablehlo

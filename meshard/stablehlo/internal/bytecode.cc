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

Bytecode::Bytecode(std::string_view bytes) {
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
  cursor.number();  // the location
  if (mask & kAttributes) op.attributes = cursor.number();
  if (mask & kWithProperties) op.properties = properties(cursor.number());
  if (mask & kResults) op.results = skip_list();
  op.operands = cursor;
  if (mask & kOperands) {
    op.operands.count();
    op.num_operands = skip_list();
  }
  if (mask & kSuccessors) skip_list();
  if (mask & kUseLists) fail_bytecode("use-list orders of operations are not supported");
  if (mask & kRegions) {
    std::uint64_t regions = cursor.number();
    op.isolated = (regions & 1) != 0;
    op.regions = static_cast<std::size_t>(regions >> 1);
  }
  return op;
}

std::size_t Bytecode::read_block(ByteCursor& cursor,
                                 std::vector<std::optional<std::uint64_t>>& arguments) const {
  std::uint64_t head = cursor.number();
  arguments.clear();
  if (head & 1) {
    for (std::size_t left = cursor.count(); left > 0; --left) {
      // Since version 4, the lowest bit indicates whether a location follows.
      std::uint64_t type = cursor.number();
      bool is_located = version_ < 4 || (type & 1) != 0;
      arguments.push_back(is_located ? std::optional(cursor.number()) : std::nullopt);
    }
    if (version_ >= 3 && cursor.byte() != 0)
      fail_bytecode("use-list orders of arguments are not supported");
  }
  return static_cast<std::size_t>(head >> 1);
}

}  // namespace meshard::stablehlo

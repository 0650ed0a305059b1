// Tested in meshard/target/compiled_test.cc.
#include "meshard/target/named_value_wire.h"

#include <variant>

namespace meshard {

using pjrt::NamedValue;
using pjrt::WireField;
using pjrt::WireReader;
using pjrt::WireWriter;

namespace {

enum NamedWireTypes { kNamedVarint = 0, kNamedDouble = 1, kNamedBytes = 2 };

bool read_number_list(std::string_view bytes, NamedValue& to) {
  std::vector<std::int64_t> numbers;
  WireReader reader(bytes);
  while (auto field = reader.next())
    if (field->number != 1 || field->type != kNamedBytes || !append_numbers(*field, numbers))
      return false;
  to.value = std::move(numbers);
  return reader.ok();
}

bool read_named_field(const WireField& field, NamedValue& to) {
  switch (field.number) {
    case 1: to.name = field.bytes; return field.type == kNamedBytes;
    case 2: to.value = std::string(field.bytes); return field.type == kNamedBytes;
    case 3: to.value = field.as_int(); return field.type == kNamedVarint;
    case 4: return field.type == kNamedBytes && read_number_list(field.bytes, to);
    case 5: to.value = static_cast<float>(field.as_double()); return field.type == kNamedDouble;
    case 6: to.value = field.as_bool(); return field.type == kNamedVarint;
    default: return false;
  }
}

}  // namespace

// Field 1 is the name; field 2 + i holds a value of type i of NamedValue::Value.
WireWriter write_named_value(const NamedValue& named) {
  WireWriter out;
  out.add_bytes(1, named.name);
  int field = 2 + static_cast<int>(named.value.index());
  if (auto* text = std::get_if<std::string>(&named.value)) out.add_bytes(field, *text);
  if (auto* number = std::get_if<std::int64_t>(&named.value))
    out.add_varint(field, static_cast<std::uint64_t>(*number));
  if (auto* list = std::get_if<std::vector<std::int64_t>>(&named.value)) {
    WireWriter numbers;
    numbers.add_packed(1, *list);
    out.add_message(field, numbers);
  }
  if (auto* real = std::get_if<float>(&named.value)) out.add_double(field, *real);
  if (auto* flag = std::get_if<bool>(&named.value)) out.add_varint(field, *flag);
  return out;
}

Result<NamedValue> read_named_value(std::string_view bytes) {
  Error damaged(ErrorCode::kDataLoss, "[named value] damaged bytes");
  NamedValue named;
  WireReader reader(bytes);
  while (auto field = reader.next())
    if (!read_named_field(*field, named)) return damaged;
  if (!reader.ok()) return damaged;
  return named;
}

}  // namespace meshard

// Handwritten HLO modules, as bytes.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/pjrt/wire.h"

namespace meshard {

using Ids = std::vector<std::int64_t>;

/// PrimitiveType numbers of element types.
enum BuilderElement { kPredElement = 1, kS4Element = 21, kS32Element = 4, kF32Element = 11 };

inline std::string array_bytes(int element, const Ids& dimensions) {
  pjrt::WireWriter shape, layout;
  shape.add_varint(2, static_cast<std::uint64_t>(element));
  shape.add_packed(3, dimensions);
  Ids order;
  for (std::size_t i = dimensions.size(); i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  layout.add_packed(1, order);
  shape.add_message(5, layout);
  return shape.take();
}
inline std::string f32_bytes(const Ids& dimensions = {4}) {
  return array_bytes(kF32Element, dimensions);
}
inline std::string tuple_bytes(const std::vector<std::string>& parts) {
  pjrt::WireWriter shape;
  shape.add_varint(2, 13);
  for (const std::string& part : parts) shape.add_bytes(4, part);
  return shape.take();
}

/// One instruction; chained setters add fields.
class InstructionBytes {
 public:
  InstructionBytes(std::int64_t id, const std::string& opcode, const std::string& shape,
                   const Ids& operands = {}) {
    writer_.add_bytes(1, cat(opcode, ".", id));
    writer_.add_bytes(2, opcode);
    writer_.add_bytes(3, shape);
    writer_.add_varint(35, static_cast<std::uint64_t>(id));
    writer_.add_packed(36, operands);
  }
  InstructionBytes& number(int field, std::int64_t value) {
    writer_.add_varint(field, static_cast<std::uint64_t>(value));
    return *this;
  }
  InstructionBytes& bytes(int field, const std::string& value) {
    writer_.add_bytes(field, value);
    return *this;
  }
  InstructionBytes& calls(const Ids& computations) {
    writer_.add_packed(38, computations);
    return *this;
  }
  InstructionBytes& dimension(std::int64_t value) {
    writer_.add_packed(14, Ids{value});
    return *this;
  }
  InstructionBytes& channel(std::int64_t value = 1) { return number(26, value); }
  InstructionBytes& global_ids() { return number(71, 1); }
  /// Groups in the oldest form, field 49.
  InstructionBytes& groups(const std::vector<Ids>& groups) {
    for (const Ids& ids : groups) {
      pjrt::WireWriter group;
      group.add_packed(1, ids);
      writer_.add_message(49, group);
    }
    return *this;
  }
  InstructionBytes& pairs(const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
    for (auto [source, target] : pairs) {
      pjrt::WireWriter pair;
      pair.add_varint(1, static_cast<std::uint64_t>(source));
      pair.add_varint(2, static_cast<std::uint64_t>(target));
      writer_.add_message(52, pair);
    }
    return *this;
  }
  InstructionBytes& source(const std::string& op_name, const std::string& file, std::int64_t line) {
    pjrt::WireWriter metadata;
    metadata.add_bytes(2, op_name);
    metadata.add_bytes(3, file);
    metadata.add_varint(4, static_cast<std::uint64_t>(line));
    writer_.add_message(7, metadata);
    return *this;
  }
  const std::string& bytes() const { return writer_.bytes(); }

 private:
  pjrt::WireWriter writer_;
};

inline InstructionBytes parameter_bytes(std::int64_t id, std::int64_t number,
                                        const std::string& shape) {
  return InstructionBytes(id, "parameter", shape).number(9, number);
}
inline InstructionBytes element_bytes(std::int64_t id, std::int64_t index, const std::string& shape,
                                      std::int64_t tuple) {
  return InstructionBytes(id, "get-tuple-element", shape, {tuple}).number(13, index);
}

/// A module whose last computation is the entry.
class ModuleBytes {
 public:
  /// The root is the last instruction.
  ModuleBytes& add(std::int64_t id, const std::vector<InstructionBytes>& instructions,
                   std::int64_t root, const std::vector<std::string>& parameters = {f32_bytes()},
                   const std::string& result = f32_bytes()) {
    pjrt::WireWriter computation;
    computation.add_bytes(1, cat("computation.", id));
    for (const InstructionBytes& each : instructions) computation.add_bytes(2, each.bytes());
    computation.add_message(4, signature(parameters, result));
    computation.add_varint(5, static_cast<std::uint64_t>(id));
    computation.add_varint(6, static_cast<std::uint64_t>(root));
    module_.add_message(3, computation);
    entry_ = id;
    signature_ = signature(parameters, result).take();
    return *this;
  }
  /// A reduction of two scalars: ids 10 * id + {1, 2, 3}.
  ModuleBytes& reduction(std::int64_t id, const std::string& opcode) {
    std::string scalar = f32_bytes({});
    return add(id,
               {parameter_bytes(10 * id + 1, 0, scalar), parameter_bytes(10 * id + 2, 1, scalar),
                InstructionBytes(10 * id + 3, opcode, scalar, {10 * id + 1, 10 * id + 2})},
               10 * id + 3, {scalar, scalar}, scalar);
  }
  ModuleBytes& field(int number, const std::string& bytes) {
    module_.add_bytes(number, bytes);
    return *this;
  }
  std::string bytes() const {
    pjrt::WireWriter end;
    end.add_bytes(1, "hand");
    end.add_varint(6, static_cast<std::uint64_t>(entry_));
    end.add_bytes(4, signature_);
    return module_.bytes() + end.take();
  }

 private:
  static pjrt::WireWriter signature(const std::vector<std::string>& parameters,
                                    const std::string& result) {
    pjrt::WireWriter shape;
    for (const std::string& each : parameters) shape.add_bytes(1, each);
    shape.add_bytes(2, result);
    return shape;
  }
  pjrt::WireWriter module_;
  std::int64_t entry_ = 0;
  std::string signature_;
};

}  // namespace meshard

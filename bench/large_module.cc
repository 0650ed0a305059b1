#include "bench/large_module.h"

#include <vector>

#include "meshard/base/cat.h"
#include "meshard/pjrt/wire.h"

namespace meshard::bench {
namespace {

using pjrt::WireWriter;

constexpr std::uint64_t kF32 = 11;

WireWriter shape_64(std::uint64_t element) {
  WireWriter shape, layout;
  shape.add_varint(2, element);
  shape.add_packed(3, std::vector<std::int64_t>{64, 64});
  layout.add_packed(1, std::vector<std::int64_t>{1, 0});
  shape.add_message(5, layout);
  return shape;
}

// Writes instructions with ids that are unique in the module.
class ModuleWriter {
 public:
  // Adds an instruction of type f32[64,64] to the current computation.
  std::int64_t add(const std::string& opcode, const std::vector<std::int64_t>& operands,
                   std::int64_t called = -1) {
    WireWriter one, metadata;
    std::int64_t id = ++count_;
    one.add_bytes(1, cat(opcode, ".", id));
    one.add_bytes(2, opcode);
    one.add_message(3, shape_64(kF32));
    metadata.add_bytes(2, cat("jit(step)/layer", id / 40, "/", opcode));
    metadata.add_bytes(3, "/home/me/project/model.py");
    metadata.add_varint(4, static_cast<std::uint64_t>(id % 500));
    one.add_message(7, metadata);
    one.add_varint(35, static_cast<std::uint64_t>(id));
    one.add_packed(36, operands);
    if (called >= 0) one.add_packed(38, std::vector<std::int64_t>{called});
    if (opcode == "dot") add_dot(one);
    if (opcode == "all-reduce") add_groups(one, id);
    computation_.add_message(2, one);
    return id;
  }

  std::int64_t finish_computation(std::int64_t root) {
    std::int64_t id = ++computations_;
    computation_.add_bytes(1, cat("computation.", id));
    computation_.add_varint(5, static_cast<std::uint64_t>(id));
    computation_.add_varint(6, static_cast<std::uint64_t>(root));
    module_.add_message(3, computation_);
    computation_ = WireWriter();
    return id;
  }

  std::string finish(std::int64_t entry) {
    module_.add_varint(6, static_cast<std::uint64_t>(entry));
    WireWriter with_config;
    with_config.add_message(1, module_);
    return with_config.take();
  }

  std::int64_t count() const { return count_; }

 private:
  static void add_dot(WireWriter& to) {
    WireWriter dot;
    dot.add_packed(1, std::vector<std::int64_t>{1});
    dot.add_packed(2, std::vector<std::int64_t>{0});
    to.add_message(30, dot);
  }
  static void add_groups(WireWriter& to, std::int64_t channel) {
    to.add_varint(26, static_cast<std::uint64_t>(channel));
    to.add_varint(71, 1);
    WireWriter iota;
    iota.add_varint(1, 64);
    iota.add_varint(2, 4);
    iota.add_packed(3, std::vector<std::int64_t>{256});
    to.add_message(92, iota);
  }

  WireWriter module_, computation_;
  std::int64_t count_ = 0, computations_ = 0;
};

}  // namespace

// Layers that consist of a product, a sum over devices and eight fusions of four instructions.
std::string large_module(std::int64_t instructions) {
  ModuleWriter writer;
  std::vector<std::int64_t> fusions;
  while (writer.count() < instructions * 4 / 5) {
    std::int64_t parameter = writer.add("parameter", {});
    std::int64_t product = writer.add("multiply", {parameter, parameter});
    std::int64_t bent = writer.add("tanh", {product});
    fusions.push_back(writer.finish_computation(writer.add("add", {bent, parameter})));
  }
  std::int64_t value = writer.add("parameter", {});
  std::int64_t weight = value;
  for (std::size_t i = 0; i < fusions.size(); ++i) {
    value = writer.add("fusion", {value, weight}, fusions[i]);
    if (i % 8 != 7) continue;
    value = writer.add("dot", {value, weight});
    value = writer.add("all-reduce", {value});
  }
  return writer.finish(writer.finish_computation(value));
}

}  // namespace meshard::bench

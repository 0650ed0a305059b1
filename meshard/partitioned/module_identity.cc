#include "meshard/partitioned/module_identity.h"

#include <unordered_map>

#include "meshard/partitioned/collective_call.h"
#include "meshard/partitioned/internal/edited_module.h"
#include "meshard/partitioned/internal/read_collective.h"
#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

using internal::EditedComputation;
using internal::EditedInstruction;
using internal::EditedModule;
using pjrt::WireReader;
using pjrt::WireWriter;

// An instruction without names and ids: operands are counted from the start of the computation.
struct Canonical {
  std::string own;
  std::vector<Fingerprint> called;
};

struct CanonicalComputation {
  std::vector<Canonical> instructions;
  Fingerprint fingerprint;
};

using ByComputation = std::unordered_map<std::int64_t, CanonicalComputation>;

bool matters(int field) {
  enum { kMetadata = 7, kStatistics = 82, kOriginalValue = 88 };
  return field != kMetadata && field != kStatistics && field != kOriginalValue;
}

// The attributes of a collective end with its source line.
std::string_view without_source(std::string_view config) {
  return config.substr(0, config.find(", where = \""));
}

std::string canonical_fields(const EditedInstruction& instruction) {
  enum { kConfig = 43 };
  bool is_call = instruction.original->custom_call_target == kCollectiveTarget;
  WireWriter writer;
  WireReader reader(instruction.rest);
  while (auto field = reader.next()) {
    if (!matters(field->number)) continue;
    if (is_call && field->number == kConfig)
      writer.add_bytes(kConfig, without_source(field->bytes));
    else
      writer.add_field(*field);
  }
  return writer.take();
}

CanonicalComputation canonical(const EditedComputation& computation, const ByComputation& before) {
  CanonicalComputation to;
  std::unordered_map<std::int64_t, std::int64_t> ordinal;
  std::string all;
  for (const EditedInstruction& each : computation.instructions) {
    WireWriter writer;
    writer.add_bytes(1, each.opcode);
    writer.add_bytes(2, each.shape);
    for (std::int64_t id : each.operands)
      writer.add_varint(3, static_cast<std::uint64_t>(ordinal.at(id)));
    for (std::int64_t id : each.control_predecessors)
      writer.add_varint(4, static_cast<std::uint64_t>(ordinal.at(id)));
    writer.add_bytes(5, canonical_fields(each));
    Canonical one{writer.take(), {}};
    WireWriter whole;
    whole.add_bytes(1, one.own);
    for (std::int64_t id : each.called) {
      one.called.push_back(before.at(id).fingerprint);
      whole.add_bytes(2, one.called.back().to_string());
    }
    all += whole.take();
    ordinal[each.id] = std::ssize(ordinal);
    to.instructions.push_back(std::move(one));
  }
  append(all, cat("root ", ordinal.at(computation.root)));
  to.fingerprint = fingerprint(all);
  return to;
}

struct CanonicalModule {
  EditedModule module;
  ByComputation computations;
  Fingerprint whole;

  static Result<CanonicalModule> from_bytes(std::string_view bytes) {
    CanonicalModule to;
    MESHARD_ASSIGN_OR_RETURN(to.module, EditedModule::from_bytes(bytes));
    for (const EditedComputation& each : to.module.computations)
      to.computations.emplace(each.id, canonical(each, to.computations));
    std::string all = to.computations.at(to.module.entry).fingerprint.to_string();
    enum { kName = 1, kEntryName = 2, kParameterNames = 3, kStackFrames = 17 };
    append(all, internal::without_field(to.module.host_program_shape, kParameterNames));
    append(all, to.module.input_output_alias);
    WireReader rest(to.module.rest);
    WireWriter kept;
    while (auto field = rest.next())
      if (field->number != kName && field->number != kEntryName && field->number != kStackFrames)
        kept.add_field(*field);
    append(all, kept.bytes());
    to.whole = fingerprint(all);
    return to;
  }
};

std::string text_of(const EditedInstruction& instruction) {
  const HloMetadata& metadata = instruction.original->metadata;
  std::string text =
      cat(instruction.opcode, " ", metadata.op_name.empty() ? instruction.name : metadata.op_name,
          " ", instruction.original->shape);
  if (!metadata.source_file.empty())
    append(text, cat(" (", metadata.source_file, ":", metadata.source_line, ")"));
  return text;
}

ModuleDifference difference_of(const EditedInstruction& a, const EditedInstruction& b) {
  ModuleDifference to{text_of(a), text_of(b), {}};
  if (a.opcode != b.opcode || !(a.original->shape == b.original->shape)) return to;
  if (a.original->custom_call_target == kCollectiveTarget &&
      b.original->custom_call_target == kCollectiveTarget)
    to.detail = cat(without_source(a.original->backend_config), " and ",
                    without_source(b.original->backend_config));
  else if (a.operands.size() != b.operands.size())
    to.detail = cat(a.operands.size(), " and ", b.operands.size(), " operands");
  else
    to.detail = "their operands or attributes differ";
  return to;
}

ModuleDifference find_difference(const CanonicalModule& first, const CanonicalModule& second) {
  std::int64_t a = first.module.entry, b = second.module.entry;
  while (true) {
    const auto &in_a = first.computations.at(a).instructions,
               &in_b = second.computations.at(b).instructions;
    const auto &of_a = first.module.find(a)->instructions,
               &of_b = second.module.find(b)->instructions;
    std::size_t i = 0, end = std::min(in_a.size(), in_b.size());
    while (i < end && in_a[i].own == in_b[i].own && in_a[i].called == in_b[i].called) ++i;
    if (i == end) {
      auto or_end = [&](const auto& of) {
        return i < of.size() ? text_of(of[i]) : std::string("the end of the computation");
      };
      if (in_a.size() == in_b.size())
        return {"the result", "the result", "the roots or the program's signatures differ"};
      return {or_end(of_a), or_end(of_b), {}};
    }
    if (in_a[i].own != in_b[i].own || in_a[i].called.size() != in_b[i].called.size())
      return difference_of(of_a[i], of_b[i]);
    std::size_t k = 0;
    while (in_a[i].called[k] == in_b[i].called[k]) ++k;
    a = of_a[i].called[k];
    b = of_b[i].called[k];
  }
}

}  // namespace

std::string ModuleDifference::to_string() const {
  return cat(first, " in the first, ", second, " in the second",
             detail.empty() ? "" : cat(": ", detail));
}

Result<Fingerprint> module_fingerprint(std::string_view hlo) {
  MESHARD_ASSIGN_OR_RETURN(CanonicalModule module, CanonicalModule::from_bytes(hlo));
  return module.whole;
}

Result<std::optional<ModuleDifference>> first_difference(std::string_view first,
                                                         std::string_view second) {
  MESHARD_ASSIGN_OR_RETURN(CanonicalModule a, CanonicalModule::from_bytes(first));
  MESHARD_ASSIGN_OR_RETURN(CanonicalModule b, CanonicalModule::from_bytes(second));
  if (a.whole == b.whole) return std::optional<ModuleDifference>();
  return std::optional(find_difference(a, b));
}

}  // namespace meshard

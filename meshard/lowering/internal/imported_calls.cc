// Tested in meshard/lowering/imported_call_test.cc.
// NodeWriter: calls of programs that were written elsewhere.
#include "meshard/lowering/internal/node_writer.h"
#include "meshard/stablehlo/merged_module.h"

namespace meshard {
namespace {

using stablehlo::Typed;

// The letters and digits of a name.
std::string plain_name(std::string_view name) {
  std::string plain = name.empty() || (name[0] >= '0' && name[0] <= '9') ? "program_" : "";
  for (char c : name) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    plain += is_plain ? c : '_';
  }
  return plain;
}

std::string devices_text(std::int64_t count) {
  return cat(count, count == 1 ? " device" : " devices");
}

}  // namespace

// The function of the module that runs the program, which becomes a part of it at the first call.
const std::string& NodeWriter::imported_function(const Node& node, const ImportedBody& body) {
  auto [known, fresh] = counters_.imported.try_emplace(body.key);
  if (!fresh) return known->second;
  const std::int64_t devices = meshes_.numbering() ? meshes_.numbering()->size() : 1;
  const bool fits = body.devices == devices || (body.devices == 1 && body.meshes.empty());
  if (!fits)
    throw_invalid(node.where(), "[load_program] \"", body.name, "\" is for ",
                  devices_text(body.devices), ", but the program that calls it runs on ",
                  devices_text(devices));
  std::map<std::string, std::string> meshes;
  if (devices > 1)
    for (const auto& [name, mesh] : body.meshes) {
      meshes[name] = meshes_.name_inside(mesh);
      if (body.has_device_order && !meshes_.has_common_order(mesh))
        throw_invalid(node.where(), "[load_program] \"", body.name,
                      "\" exchanges values between devices in the order of ", mesh,
                      ", but the program that calls it has the order of ", *meshes_.numbering(),
                      ": use meshes with one order, or call it between two programs");
    }
  std::string prefix = cat(plain_name(body.name), "_", counters_.imported.size());
  stablehlo::MergedModule merged =
      stablehlo::merge_module(body.text, prefix, meshes).value(node.where());
  writer_.merge(merged);
  return known->second = merged.entry;
}

void NodeWriter::emit_imported_call(const Node& node, const ImportedBody& body,
                                    const OpEmission& out) {
  static const TensorType kNumber{DType::i32, {}};
  const std::string& function = imported_function(node, body);
  std::vector<Typed> arguments;
  if (body.platform_number) {
    arguments.emplace_back(writer_.temporary(), kNumber);
    writer_.splat(arguments.back().value, kNumber, *body.platform_number);
  }
  for (std::size_t operand : body.taken) arguments.push_back(out.operands[operand]);
  writer_.call(function, out.results, arguments, out.location);
}

}  // namespace meshard

// Tested in meshard/stablehlo/module_reader_test.cc.
#include "meshard/stablehlo/internal/module_facts.h"

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/text_cursor.h"

namespace meshard::stablehlo {

void set_boundary_attribute(std::string_view name, std::string_view text, ModuleValue& value,
                            ModuleFacts& facts) {
  if (name == "sdy.sharding") {
    value.sharding = text;
    facts.uses_shardy = true;
  } else if (name == "mhlo.sharding") {
    // If both are present, Shardy's sharding takes precedence.
    if (!value.sharding.starts_with("#sdy")) value.sharding = text;
    facts.has_mhlo_shardings = true;
  } else if (name == "tf.aliasing_output" || (name == "jax.buffer_donor" && text != "false")) {
    value.donated = true;
  } else if (name == "mhlo.memory_kind") {
    value.memory_kind = text;
  } else if (name == "jax.arg_info" || name == "jax.result_info") {
    if (value.name.empty()) value.name = text;
  } else if (name == kPlace) {
    value.place = text;
  } else if (name == kOwnType) {
    value.own_type = text;
  } else if (name == kCaptured) {
    value.captured = true;
  }
  // meshard writes `jax.buffer_donor`, too.
  bool of_jax = name.starts_with("jax.") && name != "jax.buffer_donor";
  if (of_jax && facts.origin == ModuleOrigin::kUnknown) facts.origin = ModuleOrigin::kJax;
}

void set_module_attribute(std::string_view name, std::string_view text, ModuleFacts& facts) {
  if (name.starts_with("jax.") && facts.origin == ModuleOrigin::kUnknown)
    facts.origin = ModuleOrigin::kJax;
  if (name != kDeviceMesh) return;
  facts.origin = ModuleOrigin::kMeshard;
  if (!text.empty()) facts.device_mesh = parse_module_mesh("", text);
}

ModuleMesh parse_module_mesh(std::string_view name, std::string_view text) {
  ModuleMesh mesh{
      .name = std::string(name), .text = std::string(text), .axes = {}, .device_ids = {}};
  TextCursor cursor(text);
  cursor.expect("<");
  cursor.expect("[");
  while (!cursor.accept("]")) {
    std::string axis = cursor.quoted();
    cursor.expect("=");
    mesh.axes.emplace_back(std::move(axis), cursor.integer());
    if (!cursor.accept(",") && !cursor.peek("]")) cursor.fail("expected `,` or `]`");
  }
  if (cursor.accept(",")) {
    cursor.expect("device_ids");
    cursor.expect("=");
    cursor.expect("[");
    while (!cursor.accept("]")) {
      mesh.device_ids.push_back(cursor.integer());
      if (!cursor.accept(",") && !cursor.peek("]")) cursor.fail("expected `,` or `]`");
    }
  }
  cursor.expect(">");
  return mesh;
}

void add_frontend_meshes(std::string_view text, ModuleFacts& facts) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\\') plain += text[i];
  TextCursor cursor(plain);
  cursor.expect("{");
  while (!cursor.accept("}")) {
    std::string_view name = cursor.word();
    cursor.expect("=");
    cursor.expect("#sdy.mesh");
    facts.meshes.push_back(parse_module_mesh(name, cursor.balanced()));
    facts.uses_shardy = true;
    if (!cursor.accept(",") && !cursor.peek("}")) cursor.fail("expected `,` or `}`");
  }
}

}  // namespace meshard::stablehlo

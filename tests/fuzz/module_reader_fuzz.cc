#include "meshard/stablehlo/compiler_text.h"
#include "meshard/stablehlo/custom_calls.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/module.h"
#include "meshard/stablehlo/module_as_text.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/stablehlo/outside_ops.h"
#include "meshard/stablehlo/platform_branch.h"
#include "tests/fuzz/byte_source.h"

// Any bytes are read or rejected. The result cannot describe more than its bytes can hold: an
// argument takes at least one byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (stablehlo::is_jax_export(bytes)) {
    Result<stablehlo::JaxExport> exported = stablehlo::read_jax_export(bytes);
    if (exported) {
      fuzz_check(exported->module.size() < size, "the module inside", bytes);
      for (std::size_t kept : exported->kept)
        fuzz_check(kept < exported->argument_sizes.size(), "an argument of the module", bytes);
      (void)exported->symbolic_argument();
      (void)stablehlo::read_module(exported->module);
      (void)stablehlo::outside_ops(exported->module);
      (void)stablehlo::with_older_calls(std::string(exported->module));
      (void)stablehlo::module_as_text(exported->module);
      Result<stablehlo::PlatformBranch> chosen = stablehlo::choose_platform(exported->module, 1);
      if (chosen)
        fuzz_check(chosen->module.size() == exported->module.size(), "bytes of a branch", bytes);
    }
    return 0;
  }
  (void)stablehlo::outside_ops(bytes);
  (void)stablehlo::with_older_calls(bytes);
  Result<std::string> text = stablehlo::module_as_text(bytes);
  if (!text) fuzz_check(!text.error().message().empty(), "an error has a message", bytes);
  (void)stablehlo::replace_batched_calls(bytes);
  (void)stablehlo::with_typed_calls(bytes, "f");
  (void)stablehlo::text_for_compiler(bytes);
  Result<stablehlo::ModuleFacts> facts = stablehlo::read_module(bytes);
  if (!facts) {
    fuzz_check(!facts.error().message().empty(), "an error has a message", bytes);
    return 0;
  }
  fuzz_check(facts->arguments.size() <= size && facts->meshes.size() <= size, "sizes", bytes);
  for (const stablehlo::ModuleMesh& mesh : facts->meshes)
    fuzz_check(mesh.size() >= 0, "devices of a mesh", bytes);
  // Each op of a text is a part of it, behind the one before.
  if (facts->form != stablehlo::ModuleForm::kText) return 0;
  stablehlo::Module module = stablehlo::Module::parse(bytes).value();
  std::size_t begin = 0;
  for_each_op(module.ops(), [&](const stablehlo::ModuleOp& op) {
    stablehlo::TextRange range = module.range(op.text);
    fuzz_check(begin <= range.begin && range.end <= size, "bytes of an op", bytes);
    begin = range.begin;
  });
  return 0;
}

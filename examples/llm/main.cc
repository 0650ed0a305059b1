// Language models from Hugging Face checkpoints: generation, serving, fine-tuning, reports for
// absent pods.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "examples/llm/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Language models from Hugging Face checkpoints.", "llm");
  app.require_subcommand(1);
  llm::add_generate(app);
  llm::add_logits(app);
  llm::add_finetune(app);
  llm::add_convert(app);
  llm::add_export(app);
#ifdef LLM_SERVER
  llm::add_serve(app);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const meshard::Error& error) {
    std::fprintf(stderr, "llm: %s\n", error.what());
    return 1;
  }
  return 0;
}

// The subcommands of the program. A subcommand is one file with such a function.
#pragma once
#include <cstdint>
#include <string>

#include "examples/llm/model/paged_runner.h"
#include "meshard/meshard.h"

namespace CLI {
class App;
}  // namespace CLI

namespace llm {

/// Options that several subcommands have.
struct ModelOptions {
  std::string folder;
  std::string mesh = "1x1";  ///< devices along "data" and along "model"
  std::string dtype;         ///< empty: that of config.json
  std::int64_t page_tokens = 16, pages = 0, sequences = 8, chunk_tokens = 256, context = 0;

  void add_to(CLI::App& app, bool with_cache);
  /// The devices. @error invalid argument: not of the form 2x4
  meshard::Mesh devices() const;
  /// Starts the runtime with so many CPU devices as the mesh has, if the plugin has only those of
  /// the CPU.
  void start() const;
  meshard::DType dtype_of(const Config& config) const;
  /// The model on its devices, with a cache. Without a number of pages, so many that each sequence
  /// may have the whole context.
  PagedRunner runner() const;
};

void add_generate(CLI::App& app);
void add_logits(CLI::App& app);
void add_finetune(CLI::App& app);
void add_convert(CLI::App& app);
void add_export(CLI::App& app);
/// Only if the server is built.
void add_serve(CLI::App& app);

}  // namespace llm

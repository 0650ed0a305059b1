// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/model/load.h"

#include <filesystem>

#include "meshard/io/load_rule.h"

namespace llm {

using namespace meshard;

namespace {

// How the file's tensors become the model's: converted, and without what the model computes itself.
std::vector<io::LoadRule> rules_of(const io::Weights& weights, const Config& config, DType dtype) {
  std::vector<io::LoadRule> rules;
  bool angles = false, quantized = config.quantization.method != Quantization::Method::kNone,
       bias = false;
  for (const std::string& name : weights.names()) {
    angles = angles || name.ends_with(".rotary_emb.inv_freq");
    bias = bias || name.ends_with(".bias");
  }
  if (angles) rules.push_back({.from = {"*.rotary_emb.inv_freq"}, .to = {}});
  if (config.tied_embedding && weights.contains("lm_head.weight"))
    rules.push_back({.from = {"lm_head.weight"}, .to = {}});
  rules.push_back({.from = {"*.weight"}, .to = {"*.weight"}, .dtype = dtype});
  if (bias) rules.push_back({.from = {"*.bias"}, .to = {"*.bias"}, .dtype = dtype});
  if (quantized) {
    rules.push_back({.from = {"*.scales"}, .to = {"*.scales"}, .dtype = DType::f16});
    rules.push_back({.from = {"*"}, .to = {"*"}});
  }
  return rules;
}

}  // namespace

Result<Model> load_model(const std::string& folder, const Config& config,
                         const nn::AxisRules& rules, DType dtype, SourceLocation where) {
  MESHARD_ASSIGN_OR_RETURN(io::Weights weights, io::Weights::open(folder));
  MESHARD_ASSIGN_OR_RETURN(io::Weights named, io::mapped(weights, rules_of(weights, config, dtype),
                                                         {.strict = true}, where));
  return io::internal::restored(std::move(named), describe_model(config, dtype, rules), {}, where);
}

std::string dtype_name(DType dtype) {
  return dtype == DType::bf16 ? "bfloat16" : dtype == DType::f16 ? "float16" : "float32";
}

std::string config_with_dtype(const std::string& text, DType dtype) {
  std::string changed = text;
  for (const char* key : {"\"dtype\"", "\"torch_dtype\""}) {
    std::size_t at = changed.find(key);
    if (at == changed.npos) continue;
    std::size_t first = changed.find('"', changed.find(':', at)),
                last = changed.find('"', first + 1);
    if (first != changed.npos && last != changed.npos)
      changed.replace(first + 1, last - first - 1, dtype_name(dtype));
  }
  return changed;
}

Result<void> save_model(const std::string& folder, const Model& model, const Config& config,
                        const std::string& origin) {
  namespace fs = std::filesystem;
  if (config.quantization.method != Quantization::Method::kNone)
    return Error(ErrorCode::kUnimplemented,
                 "[llm] quantized weights cannot be saved: save an adapter instead");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return Error(ErrorCode::kUnavailable,
                 cat("[llm] cannot create ", folder, ": ", error.message()));
  MESHARD_RETURN_IF_ERROR(
      write_whole_file(fs::path(folder) / "config.json",
                       config_with_dtype(config.text, model.model.norm.weight.dtype())));
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                           "special_tokens_map.json", "added_tokens.json", "vocab.json",
                           "merges.txt", "generation_config.json", "chat_template.jinja"}) {
    fs::path from = fs::path(origin) / name;
    if (origin.empty() || !fs::exists(from)) continue;
    fs::copy_file(from, fs::path(folder) / name, fs::copy_options::overwrite_existing, error);
    if (error)
      return Error(ErrorCode::kUnavailable,
                   cat("[llm] cannot copy ", from.string(), ": ", error.message()));
  }
  return io::save(cat(folder, "/"), model);
}

}  // namespace llm

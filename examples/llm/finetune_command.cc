#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "examples/digits/plot.h"
#include "examples/llm/commands.h"
#include "examples/llm/model/load.h"
#include "examples/llm/train/events.h"
#include "examples/llm/train/finetune.h"

namespace llm {

using namespace meshard;

namespace {

struct FinetuneCommand {
  ModelOptions model;
  FinetuneOptions training;
  std::string data, out, gradients;
  bool full = false, resume = false, fsdp = false;
  AdapterConfig adapter;
};

// A file for each step, with PEFT's or the checkpoint's names.
void write_gradients(const FinetuneCommand& command, const Finetuning& finetuning) {
  Trained found = finetuning.gradients();
  std::string folder = cat(command.gradients, "/", finetuning.steps());
  if (found.adapters)
    save_adapters(folder, *found.adapters, *command.training.adapter, "").value();
  else
    save_model(folder, *found.model, read_config(command.model.folder).value(), "").value();
}

void write_curves(const std::string& out, const std::vector<double>& losses,
                  const std::vector<double>& rates) {
  if (losses.empty()) return;
  write_whole_file(out + "/loss.svg", digits::line_plot(losses, "Loss", "step", "loss")).value();
  write_whole_file(out + "/rate.svg", digits::line_plot(rates, "Learning rate", "step", "rate"))
      .value();
}

void finetune(FinetuneCommand command) {
  // Under mpirun, every process runs this program, with its part of the mesh; process 0 prints.
  Processes processes = initialize_processes().value();
  bool first = processes.process_index() == 0;
  command.model.start();
  Config config = read_config(command.model.folder).value();
  nn::AxisRules rules = rules_for(config, command.model.devices(), command.fsdp).value();
  DType dtype = command.model.dtype_of(config);
  Model model = load_model(command.model.folder, config, rules, dtype).value();
  FinetuneOptions& options = command.training;
  if (!options.adapter_from.empty())
    command.adapter = read_adapter_config(options.adapter_from).value();
  if (!command.full) options.adapter = command.adapter;
  options.checkpoint = command.out + "/training.safetensors";
  std::filesystem::create_directories(command.out);
  std::vector<Sample> samples = read_samples(command.data, config.vocabulary, nullptr).value();
  Finetuning finetuning =
      Finetuning::create(std::move(model), config, rules, options, std::move(samples)).value();
  if (command.resume) finetuning.resume().value();
  if (!command.gradients.empty()) {
    write_gradients(command, finetuning);
    return;
  }
  std::optional<EventFile> events;
  if (first) events.emplace(EventFile::create(command.out).value());
  std::vector<double> losses, rates;
  finetuning.run([&](std::int64_t step, double loss, double rate, double norm) {
    losses.push_back(loss);
    rates.push_back(rate);
    if (!first) return;
    std::printf("step %lld   loss %.7g   rate %.4g   norm of the gradient %.7g\n",
                static_cast<long long>(step), loss, rate, norm);
    std::fflush(stdout);
    const std::pair<std::string, float> points[] = {{"loss", static_cast<float>(loss)},
                                                    {"rate", static_cast<float>(rate)},
                                                    {"gradient_norm", static_cast<float>(norm)}};
    events->add(step, points).value();
  });
  if (first) write_curves(command.out, losses, rates);
  const Trained& trained = finetuning.trained();
  if (trained.adapters)
    save_adapters(command.out, *trained.adapters, *options.adapter, command.model.folder).value();
  else
    save_model(command.out, *trained.model, config, command.model.folder).value();
}

}  // namespace

void add_finetune(CLI::App& app) {
  auto options = std::make_shared<FinetuneCommand>();
  CLI::App& command =
      *app.add_subcommand("finetune", "Trains low-rank adapters, or all parameters");
  FinetuneOptions& training = options->training;
  options->model.add_to(command, false);
  command.add_option("--data", options->data, "lines of JSON: input_ids (and labels)")->required();
  command.add_option("--out", options->out, "folder for the result, checkpoints and curves")
      ->required();
  command.add_flag("--full", options->full, "trains all parameters instead of adapters");
  command.add_flag("--resume", options->resume, "continues from the checkpoint in --out");
  command.add_flag("--fsdp", options->fsdp, "shards parameters over \"data\", too");
  command.add_flag("--recompute", training.recompute,
                   "computes layers again for gradients, to save memory");
  command.add_option("--rank", options->adapter.rank, "of adapters")->capture_default_str();
  command.add_option("--alpha", options->adapter.alpha, "adapters are multiplied by alpha / rank")
      ->capture_default_str();
  command
      .add_option("--targets", options->adapter.targets,
                  "layers with adapters, such as q_proj,v_proj")
      ->delimiter(',');
  command.add_option("--adapter", training.adapter_from, "folder with adapters to begin with");
  command.add_option("--steps", training.steps)->capture_default_str();
  command.add_option("--rows", training.rows, "samples of a step")->capture_default_str();
  command.add_option("--length", training.length, "tokens of a sample; longer ones are cut off")
      ->capture_default_str();
  command.add_option("--rate", training.rate, "learning rate of AdamW")->capture_default_str();
  command.add_option("--warm-up", training.warm_up, "steps in which the rate rises")
      ->capture_default_str();
  command.add_flag("--constant-rate", training.constant_rate, "the rate does not fall");
  command.add_option("--weight-decay", training.weight_decay)->capture_default_str();
  command.add_option("--clip", training.clip, "the largest norm of the gradient")
      ->capture_default_str();
  command.add_option("--seed", training.seed)->capture_default_str();
  command.add_option("--save-every", training.save_every, "steps")->capture_default_str();
  command.add_option("--gradients", options->gradients,
                     "writes the gradients of the step to come to a folder, and ends");
  command.callback([options] { finetune(*options); });
}

}  // namespace llm

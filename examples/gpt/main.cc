// Trains a byte-level GPT on a mesh of devices, and generates text.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>

#include "examples/gpt/options.h"
#include "examples/gpt/pipeline.h"
#include "examples/gpt/report.h"
#include "examples/gpt/sample.h"
#include "examples/gpt/text.h"
#include "examples/gpt/train.h"
#include "meshard/meshard.h"

namespace gpt {
namespace {

using namespace meshard;

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush()) throw Error(ErrorCode::kUnavailable, "cannot write " + path);
  std::printf("wrote %s\n", path.c_str());
}

void print_sharding(const char* name, const Tensor& weight) {
  std::printf("  %s %s is sharded %s\n", name, weight.type().to_string().c_str(),
              weight.sharding()->spec().to_string().c_str());
}

// Who works when, if all stages take equally long.
void print_pipeline(const Pipeline& pipeline, const Options& options) {
  const PipelineSchedule& schedule = pipeline.schedule();
  PipelineTimeline timeline = timeline_of(schedule);
  std::printf("%s: %d stages on %d workers, %d microbatches; workers wait %.0f %% of the time:\n%s",
              schedule.name().c_str(), schedule.stages(), schedule.workers(),
              schedule.microbatches(), 100 * timeline.bubble(), picture(timeline).c_str());
  std::size_t first = 0;
  for (int s = 0; s < schedule.stages(); ++s) {
    std::size_t end = first + pipeline.parameters<Part>(s).blocks.size();
    std::printf("  stage %d, blocks %zu to %zu: %s\n", s, first, end - 1,
                options.mesh(schedule.worker_of(s)).to_string().c_str());
    first = end;
  }
}

int run(const Options& options) {
  // Under mpirun, every process runs this program, with one device of the mesh; process 0 prints.
  Processes processes = initialize_processes().value();
  if (processes.process_index() != 0 && !std::freopen("/dev/null", "w", stdout)) return 1;
  Mesh mesh = options.mesh();
  configure_runtime({.cpu_devices = static_cast<int>(options.device_count())}).value();
  Text text = (options.data.empty() ? license_text() : text_of_file(options.data)).value();
  std::printf("%s\n%zu training bytes, %zu held out\n", text.about.c_str(), text.train.size(),
              text.held_back.size());

  Trainer trainer(options, std::move(text));
  {
    const Gpt model = trainer.model();
    std::printf("%lld parameters on %s:\n", static_cast<long long>(count_parameters(model)),
                mesh.to_string().c_str());
    print_sharding("a query weight", model.blocks.stacked.attention.query);
    print_sharding("a second weight of an MLP", model.blocks.stacked.mlp.down.weight);
  }
  if (trainer.pipeline()) print_pipeline(*trainer.pipeline(), options);
  if (options.resume) {
    trainer.resume().value();
    std::printf("resuming after step %lld\n", static_cast<long long>(trainer.steps()));
  }
  if (!options.module.empty()) {
    if (processes.process_index() == 0) write_file(options.module, trainer.module());
    return 0;
  }
  std::printf("compiling the step ...\n");
  std::fflush(stdout);
  std::vector<double> losses = trainer.run(Progress(options.steps));
  std::printf("loss on the held-out text: %.4f nats per byte\n", trainer.held_back_loss());
  if (!options.losses.empty() && processes.process_index() == 0)
    write_file(options.losses, join(losses, "\n") + "\n");
  if (options.sample > 0) {
    std::printf("\n%s", options.prompt.c_str());
    Sampling sampling{.count = options.sample,
                      .context = options.context,
                      .temperature = options.temperature,
                      .seed = options.seed};
    sample(decoder_of(trainer.model()), trainer.rules(), options.prompt, sampling, [](char c) {
      std::putchar(c);
      std::fflush(stdout);
    });
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace gpt

int main(int count, char** arguments) {
  try {
    gpt::Options options = gpt::parse_options(count, arguments).value();
    if (options.help) {
      std::fputs(gpt::usage(), stdout);
      return 0;
    }
    return gpt::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpt: %s\n", error.what());
    return 1;
  }
}

// Trains a classifier of handwritten digits on a mesh of devices. `./dev demo` runs it.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "examples/digits/data.h"
#include "examples/digits/options.h"
#include "examples/digits/report.h"
#include "examples/digits/train.h"
#include "meshard/meshard.h"

namespace digits {
namespace {

using namespace meshard;

int run(const Options& options) {
  // Under mpirun, every process runs this program, with one device of the mesh; process 0 prints.
  Processes processes = initialize_processes().value();
  if (processes.process_index() != 0 && !std::freopen("/dev/null", "w", stdout)) return 1;
  configure_runtime({.cpu_devices = options.device_count()}).value();
  Split digits = split(read_digits(options.data).value(), /*count=*/360);
  Mesh mesh = options.mesh();
  std::printf("%lld training digits, %lld held out\n", static_cast<long long>(digits.train.size()),
              static_cast<long long>(digits.held_back.size()));
  std::printf("an MLP 64-256-128-10 on %s; compiling its step ...\n",
              options.stages == 1 ? mesh.to_string().c_str()
                                  : cat(options.workers(), " meshes of ", options.data_devices,
                                        " x ", options.model_devices, " devices")
                                        .c_str());
  std::fflush(stdout);

  Trainer trainer(options);
  std::vector<double> losses = trainer.run(digits.train, options.steps, Progress(options.steps));
  double accuracy = trainer.accuracy(digits.held_back);
  // All processes join the model of a pipeline, and save it.
  const Classifier model = trainer.model();
  const Sharding sharding = *model.columns.w.sharding();
  if (!options.save.empty()) io::save(options.save, model).value();

  if (processes.process_index() != 0) return 0;
  std::printf("\n%s\n", describe(trainer, mesh).c_str());
  std::printf("final loss %.5f\naccuracy on the held-out digits: %.2f %%\n", losses.back(),
              100 * accuracy);
  write_pictures(options.out, losses, sharding).value();
  std::printf("wrote %s/loss.svg and %s/sharding.svg\n", options.out.c_str(), options.out.c_str());
  if (!options.losses.empty()) write_file(options.losses, join(losses, "\n") + "\n").value();
  return 0;
}

}  // namespace
}  // namespace digits

int main(int count, char** arguments) {
  try {
    digits::Options options = digits::parse_options(count, arguments).value();
    if (options.help) {
      std::fputs(digits::usage(), stdout);
      return 0;
    }
    return digits::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 1;
  }
}

#include "examples/digits/report.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "examples/digits/plot.h"

namespace digits {
namespace {

using namespace meshard;

std::string kibibytes(std::int64_t bytes) { return cat((bytes + 512) / 1024, " KiB"); }

}  // namespace

Progress::Progress(std::int64_t steps) : steps_(steps), terminal_(isatty(STDOUT_FILENO) != 0) {}

void Progress::operator()(std::int64_t step, double loss) {
  Clock::time_point now = Clock::now();
  bool last = step == steps_;
  if (terminal_) {
    if (!last && now - shown_ < std::chrono::milliseconds(100)) return;
  } else {
    if (step * 10 / steps_ == tenths_) return;
    tenths_ = step * 10 / steps_;
  }
  shown_ = now;
  double seconds = std::chrono::duration<double>(now - began_).count();
  double left = seconds / double(step) * double(steps_ - step);
  std::printf("%sstep %5lld of %lld   loss %.4f   %.0f s left %s", terminal_ ? "\r" : "",
              static_cast<long long>(step), static_cast<long long>(steps_), loss, left,
              terminal_ && !last ? "" : "\n");
  std::fflush(stdout);
}

std::string describe_pipeline(const Pipeline& pipeline) {
  const PipelineSchedule& schedule = pipeline.schedule();
  PipelineTimeline timeline = timeline_of(schedule);
  std::string out =
      cat(schedule.name(), ", ", schedule.stages(), " stages on ", schedule.workers(), " workers, ",
          schedule.microbatches(), " microbatches; if stages were equal, workers would wait ",
          std::lround(100 * timeline.bubble()), " % of the time:\n");
  return out + picture(timeline);
}

std::string describe(const Trainer& trainer, const Mesh& mesh) {
  if (trainer.pipeline()) return describe_pipeline(*trainer.pipeline());
  const Training& state = trainer.state();
  const Tensor& weight = state.model.columns.w;
  std::string out = cat("the mesh, ", mesh, ":\n", picture(mesh), "\n");
  append(out, cat("the first weight, ", weight.type(), " split ", weight.sharding()->spec(), ":\n",
                  picture(*weight.sharding()), "\n"));
  ProgramReport report = explain(trainer.step());
  append(out, "the collectives of a training step:\n");
  for (const CollectiveGroup& group : report.groups()) append(out, cat("  ", group, "\n"));
  if (report.groups().empty()) append(out, "  none\n");
  std::int64_t whole = 0;
  for (const Tensor& tensor : structure::tensors(state)) whole += tensor.type().bytes();
  append(out, cat("memory: the weights and Adam's moments take ", kibibytes(whole),
                  " in total, and ", kibibytes(bytes_on_device(state)), " on each of ", mesh.size(),
                  " device", mesh.size() == 1 ? "" : "s", "\n"));
  if (report.memory()) append(out, cat(*report.memory(), "\n"));
  return out;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return Error(ErrorCode::kUnavailable, cat("[digits] cannot write ", path));
  return {};
}

Result<void> write_pictures(const std::string& folder, std::span<const double> losses,
                            const Sharding& sharding) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure)
    return Error(ErrorCode::kUnavailable,
                 cat("[digits] cannot make the folder ", folder, ": ", failure.message()));
  MESHARD_RETURN_IF_ERROR(
      write_file(folder + "/loss.svg",
                 line_plot(losses, "Loss on handwritten digits", "step", "cross-entropy")));
  return write_file(folder + "/sharding.svg", picture_svg(sharding));
}

}  // namespace digits

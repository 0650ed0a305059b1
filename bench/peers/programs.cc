// Programs of PyTorch: meshard.torch beside PyTorch's own ways to run them, and torch_xla.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/contest.h"
#include "meshard/base/cat.h"

namespace meshard::bench {
namespace {

struct TorchProgram {
  const char *work, *about;
  int turns;
};

struct ProgramPeer {
  std::string peer, name;
  bool compiled;
};

// The largest relative difference of what the first calls returned.
double value_difference(const nlohmann::json& ours, const nlohmann::json& theirs) {
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i)
    most = std::max(most, std::abs(ours[i].get<double>() / theirs.at(i).get<double>() - 1));
  return most;
}

void program_rows(Contest& contest, const TorchProgram& program, int devices) {
  nlohmann::json with = nlohmann::json::object();
  if (devices == 8) with = {{"data", 2}, {"model", 4}};
  std::unique_ptr<Peer> our_process = contest.start("meshard_torch", devices);
  PeerWork ours(*our_process, program.work, with);
  std::vector<ProgramPeer> peers{{"torch_xla", "torch_xla", true}};
  if (devices == 1) {  // PyTorch has one CPU device
    peers.push_back({"torch", "eager", false});
    peers.push_back({"torch", "compiled", true});
  }
  // One peer at a time, because each has parameters of its own.
  for (const ProgramPeer& given : peers) {
    if (!contest.has(given.peer)) continue;
    std::string name = cat("programs.", program.work, ".", devices, ".", given.name);
    contest.attempt(name, [&] {
      std::unique_ptr<Peer> process = contest.start(given.peer, devices);
      nlohmann::json options = with;
      if (given.peer == "torch") options["compiled"] = given.compiled;
      PeerWork theirs(*process, program.work, options);
      std::vector<double> seconds = fastest_in_turns(
          program.turns, {[&] { return ours.run(); }, [&] { return theirs.run(); }});
      std::string on = cat(", ", devices, devices == 1 ? " device" : " devices");
      const char* way = given.peer == "torch" ? given.compiled ? "; torch.compile" : "; eager" : "";
      char note[80];
      std::snprintf(note, sizeof note, "results differ by at most %.1e",
                    value_difference(ours.facts().at("values"), theirs.facts().at("values")));
      add_figures(contest, given.peer,
                  {.name = name,
                   .work = cat(program.about, on, way),
                   .unit = "ms",
                   .ours = seconds[0] * 1e3,
                   .theirs = seconds[1] * 1e3,
                   .note = note});
      if (given.compiled)
        add_figures(contest, given.peer,
                    {.name = name + ".ready",
                     .work = cat("capture, compile, and three calls: ", program.about, on, way),
                     .unit = "s",
                     .ours = ours.facts().at("ready").get<double>(),
                     .theirs = theirs.facts().at("ready").get<double>()});
    });
  }
}

}  // namespace

void program_contest(Contest& contest) {
  if (!contest.has("python") || !contest.has("torch")) return;
  for (const TorchProgram& program :
       {TorchProgram{"llama_decoding", "8 tokens with a cache of 256, Llama of 100 M parameters",
                     10},
        TorchProgram{"resnet_inference", "8 images of 128 x 128, ResNet-50", 10},
        TorchProgram{"llama_training", "a step with AdamW, Llama of 100 M parameters", 5},
        TorchProgram{"resnet_training", "a step with SGD, 8 images of 128 x 128, ResNet-50", 5}})
    for (int devices : {1, 8})
      contest.attempt(cat("programs.", program.work),
                      [&] { program_rows(contest, program, devices); });
}

}  // namespace meshard::bench

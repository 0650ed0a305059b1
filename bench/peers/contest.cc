#include "bench/peers/contest.h"

#include <cstdio>
#include <utility>

#include "bench/timing.h"

namespace meshard::bench {

Contest::Contest(std::map<std::string, std::string> pythons, std::string scripts,
                 std::string plugin)
    : pythons_(std::move(pythons)), scripts_(std::move(scripts)), plugin_(std::move(plugin)) {}

std::unique_ptr<Peer> Contest::start(const std::string& peer, int devices) const {
  bool is_ours_in_torch = peer == "meshard_torch";
  std::vector<std::string> command{pythons_.at(is_ours_in_torch ? "torch" : peer),
                                   script(peer + "_peer.py")};
  if (peer == "jax" || peer == "python" || is_ours_in_torch) command.push_back(plugin_);
  if (peer != "torch") command.push_back(std::to_string(devices));
  if (is_ours_in_torch) command.push_back(pythons_.at("python"));
  return std::make_unique<Peer>(command);
}

const std::string& Contest::title(const std::string& peer) {
  auto [place, is_new] = titles_.try_emplace(peer);
  if (is_new) {
    std::unique_ptr<Peer> process = start(peer);
    PeerWork hello(*process, "hello");
    place->second = hello.facts().at("project").get<std::string>() + ", " +
                    hello.facts().at("client").get<std::string>();
  }
  return place->second;
}

void Contest::attempt(const std::string& rows, const std::function<void()>& f) {
  try {
    f();
  } catch (const PeerError& error) {
    std::printf("%-26s not measured: %s\n", rows.c_str(), error.what());
    std::fflush(stdout);
  }
}

std::vector<double> fastest_in_turns(int turns, const std::vector<Side>& sides) {
  std::vector<Least> least(sides.size());
  for (int turn = 0; turn <= turns; ++turn)
    for (std::size_t i = 0; i < sides.size(); ++i) {
      double seconds = sides[i]();
      if (turn > 0) least[i].take(seconds);
    }
  std::vector<double> seconds;
  for (const Least& each : least) seconds.push_back(each.value);
  return seconds;
}

void add_figures(Contest& contest, const std::string& peer, const Figures& figures) {
  char goal[60];
  std::snprintf(goal, sizeof goal, "at %s %.3g times theirs",
                figures.higher_is_better ? "least" : "most", figures.allowed);
  contest.report().add({.name = figures.name,
                        .work = figures.work,
                        .unit = figures.unit,
                        .ours = figures.ours,
                        .floor = figures.theirs,
                        .floor_name = contest.title(peer),
                        .goal = goal,
                        .bound = figures.allowed * figures.theirs,
                        .higher_is_better = figures.higher_is_better,
                        .note = figures.note});
}

}  // namespace meshard::bench

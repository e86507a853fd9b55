// SPDX-License-Identifier: Apache-2.0
// What would a search have found with fewer trials?
#include "tune/replay.h"

#include <deque>

#include "base/text.h"
#include "tune/tuner.h"

namespace kiln::tune {

namespace {

Error cannot(std::string why) {
  return {Fault::Usage, "cannot replay a search", std::move(why),
          "use the JSON of a kiln tune run that tried all configurations"};
}

}  // namespace

// How good is the search? Timing all configurations once and then replaying the search on those
// times answers it for any budget and seed without a GPU.
Result<Replay> replay(const Json& result, Budget budget, size_t ahead) {
  if (!result.is_object() || !result.contains("space") || !result.contains("outcomes") ||
      !result["space"].is_object() || !result["outcomes"].is_array())
    return cannot("it is not a result of kiln tune");
  const Json& words = result["space"];
  if (!words.contains("params") || !words.contains("where"))
    return cannot("it does not contain its search space");
  TRY(const Space space, Space::from_json(words["params"], words["where"]));
  std::map<std::vector<std::string>, Outcome> known;
  for (const Json& line : result["outcomes"]) {
    TRY(Outcome outcome, outcome_from_json(line));
    known[outcome.defines] = std::move(outcome);
  }
  TRY(Search search, Search::make(space, budget));
  Replay played;
  std::vector<Outcome> all, seen;
  for (const auto& [defines, outcome] : known) all.push_back(outcome);
  std::deque<Point> given;
  for (;;) {
    for (Point& point : search.next(ahead + 1 - given.size())) given.push_back(std::move(point));
    if (given.empty()) break;
    const Point point = given.front();
    given.pop_front();
    const auto found = known.find(space.defines(point));
    if (found == known.end()) return cannot("it has no outcome of " + space.text(point));
    played.tried++;
    played.timed += found->second.fate == Fate::Timed;
    seen.push_back(found->second);
    tell(search, point, found->second);
  }
  const std::optional<Outcome> best = best_of(all), best_seen = best_of(seen);
  if (!best || !best_seen) return cannot("nothing in it was timed");
  played.best = *best;
  played.found = *best_seen;
  played.ratio = played.found.time_us / played.best.time_us;
  return played;
}

}  // namespace kiln::tune

#include "tf_ops/grappler/stats.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tf_stitch_gather {
namespace {

const char* KindName(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::kReplaced:
      return "replaced";
    case Outcome::kCollapsed:
      return "collapsed";
    case Outcome::kSkipped:
      break;
  }
  return "skipped";
}

// A process that makes graphs without end must not gather names without end;
// from there on, a node that is skipped twice may count twice.
constexpr size_t kMostNames = 100000;

struct Stats {
  std::mutex mutex;
  // By kind, op and reason.
  std::map<std::tuple<Outcome::Kind, std::string, std::string>, int64_t> counts;
  std::unordered_set<std::string> skipped;
};

Stats& GetStats() {
  static Stats* stats = new Stats;
  return *stats;
}

}  // namespace

void CountOutcomes(const std::string& graph,
                   const std::vector<Outcome>& outcomes) {
  Stats& stats = GetStats();
  const std::lock_guard<std::mutex> lock(stats.mutex);
  for (const Outcome& outcome : outcomes) {
    if (outcome.kind == Outcome::kSkipped) {
      if (stats.skipped.size() >= kMostNames) stats.skipped.clear();
      if (!stats.skipped
               .insert(absl::StrCat(graph, "\t", outcome.function, "\t",
                                    outcome.node, "\t", outcome.reason))
               .second) {
        continue;
      }
    }
    ++stats.counts[{outcome.kind, outcome.op, outcome.reason}];
  }
}

std::string StatsText() {
  Stats& stats = GetStats();
  const std::lock_guard<std::mutex> lock(stats.mutex);
  std::string text;
  for (const auto& [key, count] : stats.counts) {
    const auto& [kind, op, reason] = key;
    absl::StrAppend(&text, KindName(kind), "\t", op);
    if (kind == Outcome::kSkipped) {
      absl::StrAppend(&text, "\t", absl::CEscape(reason));
    }
    absl::StrAppend(&text, "\t", count, "\n");
  }
  return text;
}

void ResetStats() {
  Stats& stats = GetStats();
  const std::lock_guard<std::mutex> lock(stats.mutex);
  stats.counts.clear();
  stats.skipped.clear();
}

std::string OutcomesText(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (const Outcome& outcome : outcomes) {
    const std::vector<std::string> fields = {
        KindName(outcome.kind), absl::CEscape(outcome.function),
        absl::CEscape(outcome.node), outcome.op, absl::CEscape(outcome.reason)};
    absl::StrAppend(&text, absl::StrJoin(fields, "\t"), "\n");
  }
  return text;
}

}  // namespace tf_stitch_gather

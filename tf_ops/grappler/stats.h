// What the graph pass has done in this process.

#ifndef TF_OPS_GRAPPLER_STATS_H_
#define TF_OPS_GRAPPLER_STATS_H_

#include <string>
#include <vector>

#include "tf_ops/grappler/rewrite.h"

namespace tf_stitch_gather {

// Counts the outcomes of a run over the graph called `graph`. A pass runs more
// than once over a graph: a node that is skipped again is counted once. Thread
// safe.
void CountOutcomes(const std::string& graph,
                   const std::vector<Outcome>& outcomes);

// Lines of fields with tabs between them: "replaced", op, count; "collapsed",
// op, count; "skipped", op, reason, count.
std::string StatsText();

void ResetStats();

// A line for each outcome: "replaced", "collapsed" or "skipped", function,
// node, op, reason, with tabs between them.
std::string OutcomesText(const std::vector<Outcome>& outcomes);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GRAPPLER_STATS_H_

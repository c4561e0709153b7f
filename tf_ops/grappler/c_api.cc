#include "tf_ops/grappler/c_api.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tf_ops/core/no_throw.h"
#include "tf_ops/grappler/rewrite.h"
#include "tf_ops/grappler/stats.h"

namespace tf_stitch_gather {
namespace {

void Copy(const std::string& text, TsgBytes* bytes) {
  bytes->data = static_cast<char*>(std::malloc(text.size() + 1));
  if (bytes->data == nullptr) throw std::bad_alloc();
  bytes->size = text.size();
  if (bytes->size > 0) std::memcpy(bytes->data, text.data(), text.size());
}

TsgResult Rewrite(const char* data, size_t size, bool to_builtin, bool xla,
                  TsgBytes* rewritten, TsgBytes* outcomes) {
  tensorflow::GraphDef graph;
  if (size > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !graph.ParseFromArray(data, static_cast<int>(size))) {
    Copy("the graph cannot be read", outcomes);
    return TSG_BAD_GRAPH;
  }
  RewriteOptions options;
  options.direction = to_builtin ? Direction::kToBuiltin : Direction::kToOurs;
  options.xla = xla;
  options.prune = true;
  options.device_types = {"CPU"};
  const std::vector<Outcome> found = RewriteGraph(options, &graph);
  std::string text;
  if (!graph.SerializeToString(&text)) {
    Copy("the new graph is too large", outcomes);
    return TSG_BAD_GRAPH;
  }
  Copy(text, rewritten);
  Copy(OutcomesText(found), outcomes);
  return TSG_OK;
}

}  // namespace
}  // namespace tf_stitch_gather

int TsgRewriteGraph(const char* data, size_t size, int to_builtin, int xla,
                    TsgBytes* graph, TsgBytes* outcomes) {
  *graph = {};
  *outcomes = {};
  return tf_stitch_gather::NoThrow(
      [&] {
        return tf_stitch_gather::Rewrite(data, size, to_builtin != 0, xla != 0,
                                         graph, outcomes);
      },
      TSG_OUT_OF_MEMORY);
}

int TsgRewriteStats(TsgBytes* stats) {
  *stats = {};
  return tf_stitch_gather::NoThrow(
      [&] {
        tf_stitch_gather::Copy(tf_stitch_gather::StatsText(), stats);
        return TSG_OK;
      },
      TSG_OUT_OF_MEMORY);
}

int TsgResetRewriteStats() {
  return tf_stitch_gather::NoThrow(
      [] {
        tf_stitch_gather::ResetStats();
        return TSG_OK;
      },
      TSG_OUT_OF_MEMORY);
}

void TsgFree(TsgBytes* bytes) {
  std::free(bytes->data);
  *bytes = {};
}

// The graph pass "tf_stitch_gather", which a ConfigProto names among its
// graph_options.rewrite_options.custom_optimizers. Its parameter "xla" says
// whether XLA knows our ops.

#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/grappler/clusters/cluster.h"
#include "tensorflow/core/grappler/grappler_item.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tf_ops/core/no_throw.h"
#include "tf_ops/grappler/rewrite.h"
#include "tf_ops/grappler/stats.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::GraphDef;
using tensorflow::grappler::Cluster;
using tensorflow::grappler::CustomGraphOptimizer;
using tensorflow::grappler::GrapplerItem;

template <typename Devices>
void AddTypes(const Devices& devices, std::set<std::string>* types) {
  for (const std::string& name : devices) {
    tensorflow::DeviceNameUtils::ParsedName device;
    if (tensorflow::DeviceNameUtils::ParseFullName(name, &device) &&
        device.has_type) {
      types->insert(device.type);
    }
  }
}

bool HasWork(const GraphDef& graph) {
  const auto has_work = [](const auto& nodes) {
    for (const auto& node : nodes) {
      if (Counterpart(node.op(), Direction::kToOurs) != nullptr ||
          Counterpart(node.op(), Direction::kToBuiltin) != nullptr) {
        return true;
      }
    }
    return false;
  };
  if (has_work(graph.node())) return true;
  for (const auto& function : graph.library().function()) {
    if (has_work(function.node_def())) return true;
  }
  return false;
}

// Made when the library is loaded, so that handing it on needs no memory.
const absl::Status& OutOfMemory() {
  static const auto* const status = new absl::Status(
      absl::AbortedError("no memory to replace ops in the graph"));
  return *status;
}

class RewritePass : public CustomGraphOptimizer {
 public:
  absl::Status Init(
      const tensorflow::RewriterConfig_CustomGraphOptimizer* config) override {
    if (config == nullptr) return absl::OkStatus();
    const auto xla = config->parameter_map().find("xla");
    xla_ = xla != config->parameter_map().end() && xla->second.b();
    return absl::OkStatus();
  }

  // Of messages; short enough for a string that asks for no memory.
  std::string name() const override { return "TfStitchGather"; }
  bool UsesFunctionLibrary() const override { return true; }

  // Aborted stands for a graph that stays as it was.
  absl::Status Optimize(Cluster* cluster, const GrapplerItem& item,
                        GraphDef* optimized) override {
    return NoThrow([&] { return Rewrite(cluster, item, optimized); },
                   OutOfMemory());
  }

 private:
  absl::Status Rewrite(Cluster* cluster, const GrapplerItem& item,
                       GraphDef* optimized) const {
    if (!HasWork(item.graph)) return absl::AbortedError("nothing to replace");
    GraphDef graph = item.graph;
    RewriteOptions options;
    options.xla = xla_;
    AddTypes(item.devices(), &options.device_types);
    if (cluster != nullptr) {
      AddTypes(cluster->GetDeviceNames(), &options.device_types);
    }
    for (const auto& feed : item.feed) {
      options.fed.insert(feed.first.substr(0, feed.first.find(':')));
    }
    CountOutcomes(item.id, RewriteGraph(options, &graph));
    optimized->Swap(&graph);
    return absl::OkStatus();
  }

  bool xla_ = false;
};

// Without the pass, TensorFlow goes on.
CustomGraphOptimizer* MakePass() {
  return NoThrow([]() -> CustomGraphOptimizer* { return new RewritePass; },
                 static_cast<CustomGraphOptimizer*>(nullptr));
}

[[maybe_unused]] const bool registered = [] {
  tensorflow::grappler::CustomGraphOptimizerRegistry::RegisterOptimizerOrDie(
      MakePass, "tf_stitch_gather");
  return !OutOfMemory().ok();
}();

}  // namespace
}  // namespace tf_stitch_gather

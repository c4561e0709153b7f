// A look at the nodes of a graph or of a function: who makes a tensor, of what
// shape it is, and what is known of the integers in it.

#ifndef TF_OPS_GRAPPLER_GRAPH_VIEW_H_
#define TF_OPS_GRAPPLER_GRAPH_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"

namespace tf_stitch_gather {

// An integer that is a number, or a dimension of a tensor, or not known.
struct Size {
  static Size Of(int64_t number) { return {Kind::kNumber, number, ""}; }

  bool is(int64_t number) const {
    return kind == Kind::kNumber && value == number;
  }

  enum class Kind { kUnknown, kNumber, kDimension };
  Kind kind = Kind::kUnknown;
  int64_t value = 0;   // The number, or which dimension.
  std::string tensor;  // Of kDimension.
};

// Whether both are known and the same.
bool Same(const Size& a, const Size& b);

using Sizes = std::vector<Size>;

// Unknown where a factor is, unless it is the only one.
Size Product(const Sizes& sizes);

class GraphView {
 public:
  using Nodes = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;

  // `nodes` are those of a function or of a graph; `properties` knows them by
  // the same names. Nothing is assumed of the nodes named in `fed`.
  GraphView(bool is_function, Nodes* nodes,
            const std::unordered_set<std::string>& fed,
            const tensorflow::grappler::GraphProperties& properties);

  // The node that makes the tensor, past Identity; null for an argument of a
  // function, a fed node or one that is not there.
  const tensorflow::NodeDef* Producer(const std::string& input) const;

  // The producer, past casts of integers too, if it is of this op and has so
  // many data inputs.
  const tensorflow::NodeDef* Producer(const std::string& input, const char* op,
                                      int inputs) const;

  // Of a tensor, one dimension, and their number.
  Size Dimension(const std::string& input, int64_t k) const;
  std::optional<int64_t> Rank(const std::string& input) const;

  // The elements of a tensor of integers with at most one dimension, where it
  // is known how many they are.
  std::optional<Sizes> Values(const std::string& input) const;

  // The only element.
  Size Scalar(const std::string& input) const;

  // The n of a tensor [0, 1, ..., n - 1].
  Size Iota(const std::string& input) const;

  // The value of a Const node.
  std::optional<tensorflow::Tensor> Constant(const std::string& input) const;

  // Answers are sought in so many steps that a broken graph cannot hold one up;
  // this begins to count anew.
  void NewQuestion() const { steps_ = 0; }

  // Whether every element is a one.
  bool AllOnes(const std::string& input) const;

  // Adds a node behind `like`, on its device, and returns how to name its only
  // output, which must be called "output".
  std::string Add(const tensorflow::NodeDef& like, const std::string& suffix,
                  tensorflow::NodeDef node);

 private:
  struct Tensor {
    std::string node;
    int64_t output;
  };
  Tensor Resolve(const std::string& input) const;
  const tensorflow::NodeDef* PastCasts(const std::string& input) const;
  const tensorflow::TensorShapeProto* Shape(const Tensor& tensor) const;
  std::optional<Sizes> Compute(const tensorflow::NodeDef& node,
                               int64_t output) const;
  std::optional<Sizes> StridedSlice(const tensorflow::NodeDef& node) const;
  std::optional<Sizes> Concatenated(const tensorflow::NodeDef& node,
                                    int parts) const;
  Size Difference(const tensorflow::NodeDef& node) const;

  const bool is_function_;
  Nodes* const nodes_;
  const std::unordered_set<std::string>& fed_;
  const tensorflow::grappler::GraphProperties& properties_;
  std::unordered_map<std::string, tensorflow::NodeDef*> by_name_;
  mutable int steps_ = 0;
};

// The number of inputs that are data.
int DataInputs(const tensorflow::NodeDef& node);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GRAPPLER_GRAPH_VIEW_H_

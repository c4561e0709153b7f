// A computation of an example and what it must give.

#ifndef EXAMPLES_CC_CASES_H_
#define EXAMPLES_CC_CASES_H_

#include <string>
#include <vector>

#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/framework/tensor.h"

struct Case {
  std::string name;
  tensorflow::Output output;
  tensorflow::Tensor expected;
};

// Each adds its operations to the graph of `root`. An error is in the status of
// `root` afterwards.

// The ten examples of the reference page of tensorflow::ops::GatherNd, and what
// the attributes are for.
std::vector<Case> GatherCases(const tensorflow::Scope& root);

// The examples of the reference page of DynamicStitch, and its sized form.
std::vector<Case> StitchCases(const tensorflow::Scope& root);

// First and second derivatives where an index comes twice.
std::vector<Case> GradientCases(const tensorflow::Scope& root);

#endif  // EXAMPLES_CC_CASES_H_

// Any shapes, unknown and absurd ones included, into every check of the core.
// What passes must keep its promises: counts that fit, and nothing that more
// knowledge of the same shapes allows, but less forbids.

#include <cstddef>
#include <cstdint>
#include <string>

#include "tf_ops/core/checked_math.h"
#include "tf_ops/core/dynamic_stitch.h"
#include "tf_ops/core/gather_nd.h"
#include "tf_ops/core/index_space.h"
#include "tf_ops/core/policy.h"
#include "tf_ops/tests/fuzz_input.h"

namespace tf_stitch_gather::testing {
namespace {

// The same shape, of which less is known.
Shape Masked(const Shape& shape, FuzzInput& input) {
  if (!shape.known_rank() || input.Below(8) == 0) return Shape::UnknownRank();
  Shape masked;
  for (int i = 0; i < shape.rank(); ++i) {
    masked.Append(input.Below(3) == 0 ? kUnknown : shape.dim(i));
  }
  return masked;
}

void Tell(const Status& status) {
  FUZZ_CHECK(status.ok() == status.message().empty());
}

void Gather(FuzzInput& input) {
  const Shape params = input.AnyShape(true);
  const Shape indices = input.AnyShape(true);
  const Shape updates = input.AnyShape(true);
  const int64_t batch_dims = input.Below(3) ? input.Below(4) : input.Number();
  Shape output;
  const Status status =
      GatherNdOutputShape(params, indices, batch_dims, &output);
  Tell(status);
  if (status.ok()) {
    Shape less;
    FUZZ_CHECK(GatherNdOutputShape(Masked(params, input),
                                   Masked(indices, input), batch_dims, &less)
                   .ok());
    Tell(CheckScatterNd(indices, output, params, batch_dims));
  }
  Tell(CheckScatterNd(indices, updates, params, batch_dims));
  Shape values;
  Tell(SparseGradShape(indices, updates, &values));
  Tell(EmptyParams(params));
  if (!status.ok() || !params.fully_known() || !indices.fully_known()) return;

  IndexSpace space;
  const Status made =
      MakeIndexSpace(indices, params, static_cast<int>(batch_dims), &space);
  Tell(made);
  if (!made.ok()) return;
  int64_t product;
  FUZZ_CHECK(MultiplyFits(space.batches, space.rows_per_batch, &product));
  FUZZ_CHECK(MultiplyFits(product, space.slice_elements, &product));
  FUZZ_CHECK(MultiplyFits(space.batches, space.tuples_per_batch, &product));
  FUZZ_CHECK(BytesFit(space.slice_elements));
  FUZZ_CHECK(space.depth == indices.dim(indices.rank() - 1));
  // The last row is the sum of the last index of every dimension.
  if (space.rows_per_batch > 0) {
    int64_t last = 0;
    for (int k = 0; k < space.depth; ++k) {
      last += (space.dims[k] - 1) * space.strides[k];
    }
    FUZZ_CHECK(last == space.rows_per_batch - 1);
  }
  if (space.tuples() > 0) {
    int64_t tuple[kMaxRank];
    for (int k = 0; k < space.depth; ++k) tuple[k] = input.Number();
    const int64_t number = space.tuples() - 1 - input.Below(2);
    if (number >= 0) {
      const std::string text = BadTupleValuesMessage(
          {tuple, IndexType::kInt64}, indices, number, "shape", params);
      FUZZ_CHECK(text.find("does not index into shape") != std::string::npos);
    }
  }
}

void Stitch(FuzzInput& input) {
  StitchShapes shapes;
  StitchShapes less;
  const Shape grad = input.AnyShape(true);
  for (int64_t parts = input.Below(5); parts >= 0; --parts) {
    const Shape indices = input.AnyShape(true);
    Shape data = input.AnyShape(true);
    if (indices.known_rank() && input.Below(4) != 0) {
      data = indices;
      for (int64_t n = input.Below(3); n > 0; --n) data.Append(input.Dim(true));
    }
    Shape data_grad;
    Tell(StitchGradShape(indices, grad, &data_grad));
    const Status status = shapes.Add(indices, data);
    Tell(status);
    if (!status.ok()) return;
    FUZZ_CHECK(less.Add(Masked(indices, input), Masked(data, input)).ok());
  }
  const int64_t rows = input.Below(2) ? kUnknown : input.Dim(false);
  const Shape merged = shapes.Merged(rows);
  FUZZ_CHECK(!merged.known_rank() || merged.dim(0) == rows);
  int64_t elements;
  if (merged.fully_known() && merged.known_rank() &&
      merged.Elements(0, merged.rank(), &elements)) {
    FUZZ_CHECK(elements >= 0);
  }
  Tell(BadStitchIndex(static_cast<int>(input.Below(9)), input.Number(),
                      input.Number(), rows));
}

void Policy(FuzzInput& input) {
  const std::string text = input.Text();
  BadIndicesPolicy policy = BadIndicesPolicy::kDefault;
  const bool known =
      text.empty() || text == "DEFAULT" || text == "ERROR" || text == "IGNORE";
  const Status status = ParseBadIndicesPolicy(text, &policy);
  Tell(status);
  FUZZ_CHECK(status.ok() == known);
}

}  // namespace
}  // namespace tf_stitch_gather::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tf_stitch_gather::testing::FuzzInput input(data, size);
  switch (input.Below(5)) {
    case 0:
      tf_stitch_gather::testing::Policy(input);
      break;
    case 1:
    case 2:
      tf_stitch_gather::testing::Stitch(input);
      break;
    default:
      tf_stitch_gather::testing::Gather(input);
  }
  return 0;
}

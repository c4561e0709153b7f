// The report of the first tuple out of range, from the device to an error.

#ifndef TF_OPS_KERNELS_BAD_TUPLE_GPU_H_
#define TF_OPS_KERNELS_BAD_TUPLE_GPU_H_

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tf_ops/gpu/gather_nd.h"
#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/prepare.h"

namespace tf_stitch_gather {

// Copies share the memory.
class BadTupleReport {
 public:
  // Takes device memory for the report, and `more_words` words behind it.
  absl::Status Allocate(tensorflow::OpKernelContext* ctx,
                        const IndexedCall& call, int more_words = 0) {
    bytes_ = BadTupleReportBytes(call.space.depth) +
             more_words * static_cast<int64_t>(sizeof(uint64_t));
    void* memory;
    const absl::Status status = AllocateScratch(ctx, bytes_, &tensor_, &memory);
    words_ = static_cast<uint64_t*>(memory);
    return status;
  }

  uint64_t* words() const { return words_; }  // null: not allocated
  int64_t bytes() const { return bytes_; }

  // The error that a copy of the report tells of, if any.
  absl::Status ToStatus(const void* read, const IndexedCall& call,
                        const char* what,
                        const tensorflow::OpKernel& kernel) const {
    const uint64_t* words = static_cast<const uint64_t*>(read);
    if (words[0] == kNoBadIndex) return absl::OkStatus();
    return ToTensorFlow(Status::InvalidArgument(BadTupleValuesMessage(
                            {words + 1, IndexType::kInt64}, call.indices,
                            static_cast<int64_t>(words[0]), what, call.target)),
                        kernel);
  }

 private:
  tensorflow::Tensor tensor_;
  uint64_t* words_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_KERNELS_BAD_TUPLE_GPU_H_

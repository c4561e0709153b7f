// No exception of this library reaches TensorFlow or a program in C: they are
// not written for any, and the process would end.

#ifndef TF_OPS_CORE_NO_THROW_H_
#define TF_OPS_CORE_NO_THROW_H_

#include <new>
#include <stdexcept>

namespace tf_stitch_gather {

// What `call` returns, or a copy of `out_of_memory`. length_error is what the
// standard containers throw for sizes beyond all memory.
template <typename Call, typename Result>
Result NoThrow(const Call& call, const Result& out_of_memory) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  } catch (const std::length_error&) {
    return out_of_memory;
  }
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_NO_THROW_H_

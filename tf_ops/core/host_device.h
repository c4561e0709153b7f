// What lets one function run on the host and on the device.

#ifndef TF_OPS_CORE_HOST_DEVICE_H_
#define TF_OPS_CORE_HOST_DEVICE_H_

#if defined(__CUDACC__)
#define TSG_HOST_DEVICE __host__ __device__
#else
#define TSG_HOST_DEVICE
#endif

#endif  // TF_OPS_CORE_HOST_DEVICE_H_

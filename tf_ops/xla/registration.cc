#include "tf_ops/xla/registration.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::KernelDef;
using tensorflow::XlaOpRegistrationBuilder;
using tensorflow::XlaOpRegistry;

// A built-in op that XLA compiles for the types that it knows, and the
// attribute that holds them.
constexpr char kModelOp[] = "GatherNd";
constexpr char kModelTypeAttr[] = "Tparams";

void RegisterWithBridge(const XlaKernel& kernel) {
  XlaOpRegistrationBuilder builder = XlaOpRegistrationBuilder::Name(kernel.op);
  if (!kernel.constant_input.empty()) {
    builder.CompileTimeConstantInput(kernel.constant_input);
  }
  const tensorflow::XlaOpRegistrar registrar(builder.Build(kernel.make));
}

// The bridge hands its kernels to TensorFlow once, when it first compiles a
// function. After that they must be handed over as it does it.
void RegisterWithTensorFlow(const XlaKernel& kernel, const KernelDef& model) {
  auto definition = std::make_unique<KernelDef>();
  definition->set_op(kernel.op);
  definition->set_device_type(model.device_type());
  for (const KernelDef::AttrConstraint& constraint : model.constraint()) {
    if (constraint.name() != kModelTypeAttr) continue;
    KernelDef::AttrConstraint* added = definition->add_constraint();
    *added = constraint;
    added->set_name(kernel.type_attr);
  }
  // TensorFlow keeps what a registrar makes for as long as it runs.
  const tensorflow::kernel_factory::OpKernelRegistrar registrar(
      definition.release(), "XlaJitOp", kernel.make);
}

}  // namespace

void RegisterXlaKernels(const std::vector<XlaKernel>& kernels) {
  const std::vector<std::string> registered =
      XlaOpRegistry::GetAllRegisteredOps();
  for (const XlaKernel& kernel : kernels) {
    if (std::find(registered.begin(), registered.end(), kernel.op) !=
        registered.end()) {
      return;
    }
    const tensorflow::OpDef* definition;
    if (!tensorflow::OpRegistry::Global()
             ->LookUpOpDef(kernel.op, &definition)
             .ok()) {
      return;
    }
  }
  const tensorflow::KernelList models =
      tensorflow::GetRegisteredKernelsForOp(kModelOp);
  for (const XlaKernel& kernel : kernels) {
    RegisterWithBridge(kernel);
    for (const KernelDef& model : models.kernel()) {
      if (XlaOpRegistry::IsBackendRegistered(model.device_type())) {
        RegisterWithTensorFlow(kernel, model);
      }
    }
  }
}

}  // namespace tf_stitch_gather

// tensorflow::ClientSession for programs that link to a TensorFlow wheel.
//
// The wheel ships the header of the class, but libtensorflow_cc does not hold
// its members. This header defines them on tensorflow::Session; include it in
// place of tensorflow/cc/client/client_session.h.

#ifndef TF_OPS_CC_CLIENT_SESSION_H_
#define TF_OPS_CC_CLIENT_SESSION_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/threadpool_options.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {

class ClientSession::Impl {
 public:
  Impl(const Scope& scope, const SessionOptions& options) : scope_(scope) {
    Session* session = nullptr;
    created_ = NewSession(options, &session);
    session_.reset(session);
  }

  // The session, extended by what the graph has got since the last call.
  absl::Status UpToDate(Session** session) {
    TF_RETURN_IF_ERROR(created_);
    const std::lock_guard<std::mutex> lock(mutex_);
    const Graph& graph = *scope_.graph();
    const int nodes = graph.num_node_ids();
    if (nodes > extended_to_) {
      GraphDef added;
      graph.ToGraphDefSubRange(&added, extended_to_);
      TF_RETURN_IF_ERROR(session_->Extend(added));
      extended_to_ = nodes;
    }
    *session = session_.get();
    return absl::OkStatus();
  }

  // Why `node`, which argument `what` names, cannot be run, if so: an operation
  // that could not be added to the graph has no node.
  absl::Status CheckNode(const Node* node, const char* what) const {
    if (node != nullptr) return absl::OkStatus();
    TF_RETURN_IF_ERROR(scope_.status());
    return absl::InvalidArgumentError(
        absl::StrCat(what, " holds an operation that is not in a graph"));
  }

 private:
  const Scope scope_;
  absl::Status created_;
  std::unique_ptr<Session> session_;
  std::mutex mutex_;
  int extended_to_ = 0;
};

inline ClientSession::ClientSession(const Scope& scope,
                                    const SessionOptions& session_options)
    : impl_(std::make_unique<Impl>(scope, session_options)) {}

inline ClientSession::ClientSession(const Scope& scope)
    : ClientSession(scope, SessionOptions()) {}

inline ClientSession::ClientSession(const Scope& scope,
                                    const std::string& target)
    : ClientSession(scope, [&target] {
        SessionOptions options;
        options.target = target;
        return options;
      }()) {}

inline ClientSession::~ClientSession() = default;

inline absl::Status ClientSession::Run(
    const RunOptions& run_options, const FeedType& inputs,
    const std::vector<Output>& fetch_outputs,
    const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs,
    RunMetadata* run_metadata,
    const thread::ThreadPoolOptions& threadpool_options) const {
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (const auto& [output, value] : inputs) {
    TF_RETURN_IF_ERROR(impl_->CheckNode(output.node(), "inputs"));
    TF_RETURN_IF_ERROR(value.status);
    feeds.emplace_back(output.name(), value.tensor);
  }
  std::vector<std::string> fetches;
  for (const Output& output : fetch_outputs) {
    TF_RETURN_IF_ERROR(impl_->CheckNode(output.node(), "fetch_outputs"));
    fetches.push_back(output.name());
  }
  std::vector<std::string> targets;
  for (const Operation& operation : run_outputs) {
    TF_RETURN_IF_ERROR(impl_->CheckNode(operation.node(), "run_outputs"));
    targets.push_back(operation.node()->name());
  }
  Session* session;
  TF_RETURN_IF_ERROR(impl_->UpToDate(&session));
  return session->Run(run_options, feeds, fetches, targets, outputs,
                      run_metadata, threadpool_options);
}

inline absl::Status ClientSession::Run(
    const RunOptions& run_options, const FeedType& inputs,
    const std::vector<Output>& fetch_outputs,
    const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs,
    RunMetadata* run_metadata) const {
  return Run(run_options, inputs, fetch_outputs, run_outputs, outputs,
             run_metadata, thread::ThreadPoolOptions());
}

inline absl::Status ClientSession::Run(
    const FeedType& inputs, const std::vector<Output>& fetch_outputs,
    const std::vector<Operation>& run_outputs,
    std::vector<Tensor>* outputs) const {
  return Run(RunOptions(), inputs, fetch_outputs, run_outputs, outputs,
             nullptr);
}

inline absl::Status ClientSession::Run(const FeedType& inputs,
                                       const std::vector<Output>& fetch_outputs,
                                       std::vector<Tensor>* outputs) const {
  return Run(inputs, fetch_outputs, {}, outputs);
}

inline absl::Status ClientSession::Run(const std::vector<Output>& fetch_outputs,
                                       std::vector<Tensor>* outputs) const {
  return Run(FeedType(), fetch_outputs, {}, outputs);
}

inline absl::Status ClientSession::MakeCallable(
    const CallableOptions& callable_options, CallableHandle* out_handle) {
  Session* session;
  TF_RETURN_IF_ERROR(impl_->UpToDate(&session));
  return session->MakeCallable(callable_options, out_handle);
}

inline absl::Status ClientSession::RunCallable(
    CallableHandle handle, const std::vector<Tensor>& feed_tensors,
    std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata) {
  Session* session;
  TF_RETURN_IF_ERROR(impl_->UpToDate(&session));
  return session->RunCallable(handle, feed_tensors, fetch_tensors,
                              run_metadata);
}

inline absl::Status ClientSession::RunCallable(
    CallableHandle handle, const std::vector<Tensor>& feed_tensors,
    std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
    const thread::ThreadPoolOptions& options) {
  Session* session;
  TF_RETURN_IF_ERROR(impl_->UpToDate(&session));
  return session->RunCallable(handle, feed_tensors, fetch_tensors, run_metadata,
                              options);
}

inline absl::Status ClientSession::ReleaseCallable(CallableHandle handle) {
  Session* session;
  TF_RETURN_IF_ERROR(impl_->UpToDate(&session));
  return session->ReleaseCallable(handle);
}

}  // namespace tensorflow

#endif  // TF_OPS_CC_CLIENT_SESSION_H_

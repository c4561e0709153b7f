/* Loads the op library through TensorFlow's C API, as any language with a
 * binding to that API can, and runs the ops:
 *
 *     c_api PATH_OF_LIBTF_STITCH_GATHER_SO
 *
 * Ends with 1 if anything is not as it should be. */

#include "tensorflow/c/c_api.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program unless the last call went well. */
static void Check(const TF_Status* status, const char* call) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", call, TF_Message(status));
  exit(1);
}

static TF_Tensor* Int32Tensor(const int64_t* dims, int num_dims,
                              const int32_t* values) {
  size_t bytes = sizeof(int32_t);
  for (int i = 0; i < num_dims; ++i) bytes *= (size_t)dims[i];
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT32, dims, num_dims, bytes);
  memcpy(TF_TensorData(tensor), values, bytes);
  return tensor;
}

static TF_Output Constant(TF_Graph* graph, const char* name,
                          const int64_t* dims, int num_dims,
                          const int32_t* values, TF_Status* status) {
  TF_Tensor* tensor = Int32Tensor(dims, num_dims, values);
  TF_OperationDescription* description = TF_NewOperation(graph, "Const", name);
  TF_SetAttrTensor(description, "value", tensor, status);
  Check(status, "TF_SetAttrTensor");
  TF_SetAttrType(description, "dtype", TF_INT32);
  TF_Output output = {TF_FinishOperation(description, status), 0};
  Check(status, "TF_FinishOperation of Const");
  TF_DeleteTensor(tensor);
  return output;
}

static TF_Output GatherNd(TF_Graph* graph, const char* name, TF_Output params,
                          TF_Output indices, const char* policy,
                          TF_Status* status) {
  TF_OperationDescription* description =
      TF_NewOperation(graph, "MyGatherNd", name);
  TF_AddInput(description, params);
  TF_AddInput(description, indices);
  TF_SetAttrString(description, "bad_indices_policy", policy, strlen(policy));
  TF_Output output = {TF_FinishOperation(description, status), 0};
  return output;
}

static TF_Output DynamicStitch(TF_Graph* graph, const char* name,
                               const TF_Output* indices, const TF_Output* data,
                               int parts, TF_Status* status) {
  TF_OperationDescription* description =
      TF_NewOperation(graph, "MyDynamicStitch", name);
  TF_AddInputList(description, indices, parts);
  TF_AddInputList(description, data, parts);
  TF_Output output = {TF_FinishOperation(description, status), 0};
  return output;
}

/* The tensor that `output` gives, or NULL with the error in `status`. */
static TF_Tensor* Run(TF_Session* session, TF_Output output,
                      TF_Status* status) {
  TF_Tensor* tensor = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &output, &tensor, 1, NULL, 0,
                NULL, status);
  return TF_GetCode(status) == TF_OK ? tensor : NULL;
}

/* Prints the result of a run. Returns whether it holds `expected`. */
static int Holds(const char* what, TF_Tensor* tensor, const int32_t* expected,
                 size_t count) {
  const int32_t* values = TF_TensorData(tensor);
  int right = TF_TensorType(tensor) == TF_INT32 &&
              TF_TensorByteSize(tensor) == count * sizeof(int32_t) &&
              memcmp(values, expected, count * sizeof(int32_t)) == 0;
  printf("%-5s  %-16s ", right ? "ok" : "WRONG", what);
  for (size_t i = 0; i < TF_TensorByteSize(tensor) / sizeof(int32_t); ++i) {
    printf(" %d", (int)values[i]);
  }
  printf("\n");
  TF_DeleteTensor(tensor);
  return right;
}

/* Prints an error. Returns whether it is of bad input and has these words. */
static int Refuses(const char* what, const TF_Status* status,
                   const char* words) {
  int right = TF_GetCode(status) == TF_INVALID_ARGUMENT &&
              strstr(TF_Message(status), words) != NULL;
  printf("%-5s  %-16s  %s\n", right ? "ok" : "WRONG", what, TF_Message(status));
  return right;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s PATH_OF_LIBTF_STITCH_GATHER_SO\n", argv[0]);
    return 2;
  }
  TF_Status* status = TF_NewStatus();
  TF_Library* library = TF_LoadLibrary(argv[1], status);
  Check(status, "TF_LoadLibrary");

  TF_Graph* graph = TF_NewGraph();
  const int64_t two_by_two[] = {2, 2};
  const int64_t two_by_one[] = {2, 1};
  const int64_t two[] = {2};
  const int32_t matrix[] = {1, 2, 3, 4};
  const int32_t rows[] = {1, 0};
  const int32_t bad_rows[] = {0, 7};
  const int32_t even[] = {0, 2};
  const int32_t odd[] = {3, 1};
  TF_Output params = Constant(graph, "params", two_by_two, 2, matrix, status);
  TF_Output good = Constant(graph, "good", two_by_one, 2, rows, status);
  TF_Output bad = Constant(graph, "bad", two_by_one, 2, bad_rows, status);
  TF_Output indices[] = {Constant(graph, "even", two, 1, even, status),
                         Constant(graph, "odd", two, 1, odd, status)};
  TF_Output data[] = {params, params};

  TF_Output gather = GatherNd(graph, "gather", params, good, "", status);
  Check(status, "MyGatherNd");
  TF_Output ignoring =
      GatherNd(graph, "ignoring", params, bad, "IGNORE", status);
  Check(status, "MyGatherNd that ignores");
  TF_Output failing = GatherNd(graph, "failing", params, bad, "ERROR", status);
  Check(status, "MyGatherNd that fails");
  TF_Output stitch = DynamicStitch(graph, "stitch", indices, data, 2, status);
  Check(status, "MyDynamicStitch");

  /* What can be told from shapes and attributes fails here. */
  int right = 1;
  GatherNd(graph, "refused", params, good, "CLAMP", status);
  right &= Refuses("a bad policy", status,
                   "bad_indices_policy = 'CLAMP' is not one of");

  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, options, status);
  Check(status, "TF_NewSession");
  TF_DeleteSessionOptions(options);

  const int32_t gathered[] = {3, 4, 1, 2};
  const int32_t ignored[] = {1, 2, 0, 0};
  const int32_t stitched[] = {1, 2, 3, 4, 3, 4, 1, 2};
  TF_Tensor* tensor = Run(session, gather, status);
  Check(status, "TF_SessionRun of MyGatherNd");
  right &= Holds("gather", tensor, gathered, 4);
  tensor = Run(session, ignoring, status);
  Check(status, "TF_SessionRun of MyGatherNd that ignores");
  right &= Holds("bad rows ignored", tensor, ignored, 4);
  tensor = Run(session, stitch, status);
  Check(status, "TF_SessionRun of MyDynamicStitch");
  right &= Holds("stitch", tensor, stitched, 8);

  /* Indices are known to be bad only when they are read. */
  Run(session, failing, status);
  right &= Refuses("bad rows", status,
                   "indices[1] = [7] does not index into param shape [2,2]");

  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteLibraryHandle(library);
  TF_DeleteStatus(status);
  printf("%s\n", right ? "0 wrong" : "some are wrong");
  return right ? 0 : 1;
}

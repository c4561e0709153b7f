/* What the library offers beside its ops, to C and to ctypes: the rewriting of
   graphs, and what the graph pass has done. */

#ifndef TF_OPS_GRAPPLER_C_API_H_
#define TF_OPS_GRAPPLER_C_API_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSG_EXPORT __attribute__((visibility("default")))

/* Bytes that TsgFree frees. */
typedef struct TsgBytes {
  char* data;
  size_t size;
} TsgBytes;

/* What the functions return. */
enum TsgResult { TSG_OK = 0, TSG_BAD_GRAPH = 1, TSG_OUT_OF_MEMORY = 2 };

/* Rewrites a serialized GraphDef: with `to_builtin` from our ops to built-in
   ones, else the other way. `xla` says whether XLA knows our ops. Sets `graph`
   to the new GraphDef and `outcomes` to a line for each node that has a
   counterpart: "replaced", "collapsed" or "skipped", function, node, op and
   reason, with tabs between them. With TSG_BAD_GRAPH, `outcomes` is the reason.
   The caller frees both, whatever comes back. */
TSG_EXPORT int TsgRewriteGraph(const char* data, size_t size, int to_builtin,
                               int xla, TsgBytes* graph, TsgBytes* outcomes);

/* What the graph pass did since the last reset. Lines with tabs between the
   fields: "replaced" or "collapsed", op and count; "skipped", op, reason and
   count. */
TSG_EXPORT int TsgRewriteStats(TsgBytes* stats);
TSG_EXPORT int TsgResetRewriteStats(void);

TSG_EXPORT void TsgFree(TsgBytes* bytes);

#ifdef __cplusplus
}
#endif

#endif /* TF_OPS_GRAPPLER_C_API_H_ */

#include "graph/refused_ops.h"

namespace leat {

// A reason after '#', and the ops that are refused for it. A line that begins with a space
// continues the one before. What an attribute may be is left out: only kernels care.
const std::string_view refused_ops_table = R"(
# the function lives in the client's process and can never run on another task: compute it there
  and feed its result
PyFunc(input: Tin) -> (output: Tout) {Tin: list(type) >= 0; Tout: list(type) >= 0; token: string}
PyFuncStateless(input: Tin) -> (output: Tout) {Tin: list(type) >= 0; Tout: list(type) >= 0;
  token: string}
EagerPyFunc(input: Tin) -> (output: Tout) {Tin: list(type) >= 0; Tout: list(type) >= 0;
  token: string; is_async: bool = false}
GeneratorDataset(init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args,
  finalize_func_other_args: Tfinalize_func_args) -> (handle: variant) {init_func: func;
  next_func: func; finalize_func: func; Tinit_func_args: list(type) >= 0;
  Tnext_func_args: list(type) >= 0; Tfinalize_func_args: list(type) >= 0;
  output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''}
# this part of tf.data is not supported; map, filter, shuffle, batch, window, scan, interleave and
  similar ones are
ShuffleDatasetV2(input_dataset: variant, buffer_size: int64, seed_generator: resource)
  -> (handle: variant) {output_types: list(type) >= 1; output_shapes: list(shape) >= 1;
  metadata: string = ''}
SnapshotDatasetV2(input_dataset: variant, path: string, reader_func_other_args: Treader_func_args,
  shard_func_other_args: Tshard_func_args) -> (handle: variant) {output_types: list(type) >= 1;
  output_shapes: list(shape) >= 1; compression: string = ''; reader_prefix: string = '';
  writer_prefix: string = ''; hash_valid: bool = false; hash: int = 0; reader_func: func;
  shard_func: func; Treader_func_args: list(type) >= 0; Tshard_func_args: list(type) >= 0;
  metadata: string = ''}
DatasetToTFRecord(input_dataset: variant, filename: string, compression_type: string) -> () {}
LMDBDataset(filenames: string) -> (handle: variant) {output_types: list(type) >= 1; output_shapes:
  list(shape) >= 1}
LoadDataset(path: string, reader_func_other_args: Treader_func_args) -> (handle: variant)
  {output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = '';
  reader_func: func; Treader_func_args: list(type) >= 0}
MatchingFilesDataset(patterns: string) -> (handle: variant) {}
ParallelFilterDataset(input_dataset: variant, other_arguments: Targuments, num_parallel_calls:
  int64) -> (handle: variant) {predicate: func; deterministic: string = 'default'; Targuments:
  list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata:
  string = ''}
SaveDataset(input_dataset: variant, path: string, shard_func_other_args: Tshard_func_args) -> ()
  {compression: string = ''; shard_func: func; use_shard_func: bool = true; Tshard_func_args:
  list(type) >= 0}
SaveDatasetV2(input_dataset: variant, path: string, shard_func_other_args: Tshard_func_args) ->
  (handle: variant) {compression: string = ''; shard_func: func; use_shard_func: bool = true;
  Tshard_func_args: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >=
  1}
SlidingWindowDataset(input_dataset: variant, window_size: int64, window_shift: int64,
  window_stride: int64) -> (handle: variant) {drop_remainder: bool = true; output_types:
  list(type) >= 1; output_shapes: list(shape) >= 1}
SqlDataset(driver_name: string, data_source_name: string, query: string) -> (handle: variant)
  {output_types: list(type) >= 1; output_shapes: list(shape) >= 1}
TFRecordDatasetV2(filenames: string, compression_type: string, buffer_size: int64, byte_offsets:
  int64) -> (handle: variant) {metadata: string = ''}
# a cluster keeps no tensors for handles, nor does TensorFlow's: keep the value in a variable
GetSessionHandle(value: T) -> (handle: string) {T: type}
GetSessionHandleV2(value: T) -> (handle: resource) {T: type}
GetSessionTensor(handle: string) -> (value: dtype) {dtype: type}
DeleteSessionTensor(handle: string) -> () {}
# newer versions of TensorFlow write another op instead: export the graph again with one of them
BatchCholesky(input: T) -> (output: T) {T: type}
BatchCholeskyGrad(l: T, grad: T) -> (output: T) {T: type}
BatchMatrixBandPart(input: T, num_lower: int64, num_upper: int64) -> (band: T) {T: type}
BatchMatrixDeterminant(input: T) -> (output: T) {T: type}
BatchMatrixDiag(diagonal: T) -> (output: T) {T: type}
BatchMatrixDiagPart(input: T) -> (diagonal: T) {T: type}
BatchMatrixInverse(input: T) -> (output: T) {adjoint: bool = false; T: type}
BatchMatrixSetDiag(input: T, diagonal: T) -> (output: T) {T: type}
BatchMatrixSolve(matrix: T, rhs: T) -> (output: T) {adjoint: bool = false; T: type}
BatchMatrixSolveLs(matrix: T, rhs: T, l2_regularizer: double) -> (output: T) {T: type; fast: bool
  = true}
BatchMatrixTriangularSolve(matrix: T, rhs: T) -> (output: T) {lower: bool = true; adjoint: bool =
  false; T: type}
BatchSelfAdjointEig(input: T) -> (output: T) {T: type}
BatchSelfAdjointEigV2(input: T) -> (e: T, v: T) {compute_v: bool = true; T: type}
BatchSvd(input: T) -> (s: T, u: T, v: T) {compute_uv: bool = true; full_matrices: bool = false; T:
  type}
BiasAddV1(value: T, bias: T) -> (output: T) {T: type}
CholeskyGrad(l: T, grad: T) -> (output: T) {T: type}
Conv3DBackpropFilter(input: T, filter: T, out_backprop: T) -> (output: T) {T: type; strides:
  list(int) >= 5; padding: string; dilations: list(int) = [1, 1, 1, 1, 1]}
Conv3DBackpropInput(input: T, filter: T, out_backprop: T) -> (output: T) {T: type; strides:
  list(int) >= 5; padding: string; dilations: list(int) = [1, 1, 1, 1, 1]}
FIFOQueue() -> (handle: Ref(string)) {component_types: list(type) >= 1; shapes: list(shape) >= 0 =
  []; capacity: int = -1; container: string = ''; shared_name: string = ''}
FixedLengthRecordReader() -> (reader_handle: Ref(string)) {header_bytes: int = 0; record_bytes:
  int; footer_bytes: int = 0; hop_bytes: int = 0; container: string = ''; shared_name: string =
  ''}
IdentityReader() -> (reader_handle: Ref(string)) {container: string = ''; shared_name: string =
  ''}
PaddingFIFOQueue() -> (handle: Ref(string)) {component_types: list(type) >= 1; shapes: list(shape)
  >= 0 = []; capacity: int = -1; container: string = ''; shared_name: string = ''}
PlaceholderV2() -> (output: dtype) {dtype: type; shape: shape}
PriorityQueue() -> (handle: Ref(string)) {component_types: list(type) >= 0 = []; shapes:
  list(shape) >= 0; capacity: int = -1; container: string = ''; shared_name: string = ''}
QuantizeAndDequantize(input: T) -> (output: T) {signed_input: bool = true; num_bits: int = 8;
  range_given: bool = false; input_min: float = 0.0; input_max: float = 0.0; T: type}
QueueClose(handle: Ref(string)) -> () {cancel_pending_enqueues: bool = false}
QueueDequeue(handle: Ref(string)) -> (components: component_types) {component_types: list(type) >=
  1; timeout_ms: int = -1}
QueueDequeueMany(handle: Ref(string), n: int32) -> (components: component_types) {component_types:
  list(type) >= 1; timeout_ms: int = -1}
QueueDequeueUpTo(handle: Ref(string), n: int32) -> (components: component_types) {component_types:
  list(type) >= 1; timeout_ms: int = -1}
QueueEnqueue(handle: Ref(string), components: Tcomponents) -> () {Tcomponents: list(type) >= 1;
  timeout_ms: int = -1}
QueueEnqueueMany(handle: Ref(string), components: Tcomponents) -> () {Tcomponents: list(type) >=
  1; timeout_ms: int = -1}
QueueIsClosed(handle: Ref(string)) -> (is_closed: bool) {}
QueueSize(handle: Ref(string)) -> (size: int32) {}
RandomCrop(image: T, size: int64) -> (output: T) {T: type; seed: int = 0; seed2: int = 0}
RandomPoisson(shape: S, rate: dtype) -> (output: dtype) {seed: int = 0; seed2: int = 0; S: type;
  dtype: type}
RandomShuffleQueue() -> (handle: Ref(string)) {component_types: list(type) >= 1; shapes:
  list(shape) >= 0 = []; capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0; seed2: int
  = 0; container: string = ''; shared_name: string = ''}
ReaderNumRecordsProduced(reader_handle: Ref(string)) -> (records_produced: int64) {}
ReaderNumWorkUnitsCompleted(reader_handle: Ref(string)) -> (units_completed: int64) {}
ReaderRead(reader_handle: Ref(string), queue_handle: Ref(string)) -> (key: string, value: string)
  {}
ReaderReadUpTo(reader_handle: Ref(string), queue_handle: Ref(string), num_records: int64) ->
  (keys: string, values: string) {}
ReaderReset(reader_handle: Ref(string)) -> () {}
ReaderRestoreState(reader_handle: Ref(string), state: string) -> () {}
ReaderSerializeState(reader_handle: Ref(string)) -> (state: string) {}
SelfAdjointEig(input: T) -> (output: T) {T: type}
TFRecordReader() -> (reader_handle: Ref(string)) {container: string = ''; shared_name: string =
  ''; compression_type: string = ''}
TensorArray(size: int32) -> (handle: Ref(string)) {dtype: type; dynamic_size: bool = false;
  clear_after_read: bool = true; tensor_array_name: string = ''; element_shape: shape = <unknown>}
TensorArrayClose(handle: Ref(string)) -> () {}
TensorArrayCloseV2(handle: string) -> () {}
TensorArrayConcat(handle: Ref(string), flow_in: float) -> (value: dtype, lengths: int64) {dtype:
  type; element_shape_except0: shape = <unknown>}
TensorArrayConcatV2(handle: string, flow_in: float) -> (value: dtype, lengths: int64) {dtype:
  type; element_shape_except0: shape = <unknown>}
TensorArrayGather(handle: Ref(string), indices: int32, flow_in: float) -> (value: dtype) {dtype:
  type; element_shape: shape = <unknown>}
TensorArrayGatherV2(handle: string, indices: int32, flow_in: float) -> (value: dtype) {dtype:
  type; element_shape: shape = <unknown>}
TensorArrayGrad(handle: string, flow_in: float) -> (grad_handle: Ref(string)) {source: string}
TensorArrayGradV2(handle: string, flow_in: float) -> (grad_handle: string) {source: string}
TensorArrayPack(handle: Ref(string), flow_in: float) -> (value: dtype) {dtype: type;
  element_shape: shape = <unknown>}
TensorArrayRead(handle: Ref(string), index: int32, flow_in: float) -> (value: dtype) {dtype: type}
TensorArrayReadV2(handle: string, index: int32, flow_in: float) -> (value: dtype) {dtype: type}
TensorArrayScatter(handle: Ref(string), indices: int32, value: T, flow_in: float) -> (flow_out:
  float) {T: type}
TensorArrayScatterV2(handle: string, indices: int32, value: T, flow_in: float) -> (flow_out:
  float) {T: type}
TensorArraySize(handle: Ref(string), flow_in: float) -> (size: int32) {}
TensorArraySizeV2(handle: string, flow_in: float) -> (size: int32) {}
TensorArraySplit(handle: Ref(string), value: T, lengths: int64, flow_in: float) -> (flow_out:
  float) {T: type}
TensorArraySplitV2(handle: string, value: T, lengths: int64, flow_in: float) -> (flow_out: float)
  {T: type}
TensorArrayUnpack(handle: Ref(string), value: T, flow_in: float) -> (flow_out: float) {T: type}
TensorArrayV2(size: int32) -> (handle: string) {dtype: type; element_shape: shape = <unknown>;
  dynamic_size: bool = false; clear_after_read: bool = true; tensor_array_name: string = ''}
TensorArrayWrite(handle: Ref(string), index: int32, value: T, flow_in: float) -> (flow_out: float)
  {T: type}
TensorArrayWriteV2(handle: string, index: int32, value: T, flow_in: float) -> (flow_out: float)
  {T: type}
TextLineReader() -> (reader_handle: Ref(string)) {skip_header_lines: int = 0; container: string =
  ''; shared_name: string = ''}
TileGrad(input: T, multiples: int32) -> (output: T) {T: type}
TopK(input: T) -> (values: T, indices: int32) {k: int; sorted: bool = true; T: type}
WholeFileReader() -> (reader_handle: Ref(string)) {container: string = ''; shared_name: string =
  ''}
# ops of 8-bit integer networks have no kernels: use the float graph
Dequantize(input: T, min_range: float, max_range: float) -> (output: dtype) {T: type; mode: string
  = 'MIN_COMBINED'; narrow_range: bool = false; axis: int = -1; dtype: type = float}
QuantizeDownAndShrinkRange(input: Tinput, input_min: float, input_max: float) -> (output:
  out_type, output_min: float, output_max: float) {Tinput: type; out_type: type}
QuantizeV2(input: float, min_range: float, max_range: float) -> (output: T, output_min: float,
  output_max: float) {T: type; mode: string = 'MIN_COMBINED'; round_mode: string =
  'HALF_AWAY_FROM_ZERO'; narrow_range: bool = false; axis: int = -1; ensure_minimum_range: float =
  0.009999999776482582}
QuantizedAdd(x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float) -> (z: Toutput,
  min_z: float, max_z: float) {T1: type; T2: type; Toutput: type}
QuantizedAvgPool(input: T, min_input: float, max_input: float) -> (output: T, min_output: float,
  max_output: float) {T: type; ksize: list(int); strides: list(int); padding: string}
QuantizedBatchNormWithGlobalNormalization(t: Tinput, t_min: float, t_max: float, m: Tinput, m_min:
  float, m_max: float, v: Tinput, v_min: float, v_max: float, beta: Tinput, beta_min: float,
  beta_max: float, gamma: Tinput, gamma_min: float, gamma_max: float) -> (result: out_type,
  result_min: float, result_max: float) {Tinput: type; out_type: type; variance_epsilon: float;
  scale_after_normalization: bool}
QuantizedBiasAdd(input: T1, bias: T2, min_input: float, max_input: float, min_bias: float,
  max_bias: float) -> (output: out_type, min_out: float, max_out: float) {T1: type; T2: type;
  out_type: type}
QuantizedConcat(concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float)
  -> (output: T, output_min: float, output_max: float) {N: int; T: type}
QuantizedConcatV2(values: N * T, axis: Tidx, input_mins: N * float, input_maxes: N * float) ->
  (output: T, output_min: float, output_max: float) {N: int; T: type; Tidx: type = int32}
QuantizedConv2D(input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter:
  float, max_filter: float) -> (output: out_type, min_output: float, max_output: float) {Tinput:
  type; Tfilter: type; out_type: type; strides: list(int); padding: string; dilations: list(int) =
  [1, 1, 1, 1]}
QuantizedConv2DAndRelu(input: Tinput, filter: Tfilter, min_input: float, max_input: float,
  min_filter: float, max_filter: float) -> (output: out_type, min_output: float, max_output:
  float) {Tinput: type; Tfilter: type; out_type: type; strides: list(int); padding: string;
  dilations: list(int) = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedConv2DAndReluAndRequantize(input: Tinput, filter: Tfilter, min_input: float, max_input:
  float, min_filter: float, max_filter: float, min_freezed_output: float, max_freezed_output:
  float) -> (output: out_type, min_output: float, max_output: float) {Tinput: type; Tfilter: type;
  out_type: type; strides: list(int); padding: string; dilations: list(int) = [1, 1, 1, 1];
  padding_list: list(int) = []}
QuantizedConv2DAndRequantize(input: Tinput, filter: Tfilter, min_input: float, max_input: float,
  min_filter: float, max_filter: float, min_freezed_output: float, max_freezed_output: float) ->
  (output: out_type, min_output: float, max_output: float) {Tinput: type; Tfilter: type; out_type:
  type; strides: list(int); padding: string; dilations: list(int) = [1, 1, 1, 1]; padding_list:
  list(int) = []}
QuantizedConv2DPerChannel(input: Tinput, filter: Tfilter, min_input: float, max_input: float,
  min_filter: float, max_filter: float) -> (output: out_type, min_output: float, max_output:
  float) {Tinput: type; Tfilter: type; out_type: type; strides: list(int); padding: string;
  dilations: list(int) = [1, 1, 1, 1]}
QuantizedConv2DWithBias(input: Tinput, filter: Tfilter, bias: float, min_input: float, max_input:
  float, min_filter: float, max_filter: float) -> (output: out_type, min_output: float,
  max_output: float) {Tinput: type; Tfilter: type; out_type: type; strides: list(int); padding:
  string; dilations: list(int) = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedConv2DWithBiasAndRelu(input: Tinput, filter: Tfilter, bias: float, min_input: float,
  max_input: float, min_filter: float, max_filter: float) -> (output: out_type, min_output: float,
  max_output: float) {Tinput: type; Tfilter: type; out_type: type; strides: list(int); padding:
  string; dilations: list(int) = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedConv2DWithBiasAndReluAndRequantize(input: Tinput, filter: Tfilter, bias: Tbias,
  min_input: float, max_input: float, min_filter: float, max_filter: float, min_freezed_output:
  float, max_freezed_output: float) -> (output: out_type, min_output: float, max_output: float)
  {Tinput: type; Tfilter: type; Tbias: type; out_type: type; strides: list(int); padding: string;
  dilations: list(int) = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedConv2DWithBiasAndRequantize(input: Tinput, filter: Tfilter, bias: Tbias, min_input:
  float, max_input: float, min_filter: float, max_filter: float, min_freezed_output: float,
  max_freezed_output: float) -> (output: out_type, min_output: float, max_output: float) {Tinput:
  type; Tfilter: type; Tbias: type; out_type: type; strides: list(int); padding: string;
  dilations: list(int) = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedConv2DWithBiasSignedSumAndReluAndRequantize(input: Tinput, filter: Tfilter, bias: Tbias,
  min_input: float, max_input: float, min_filter: float, max_filter: float, min_freezed_output:
  float, max_freezed_output: float, summand: Tsummand, min_summand: float, max_summand: float) ->
  (output: out_type, min_output: float, max_output: float) {Tinput: type; Tfilter: type; Tbias:
  type; Tsummand: type; out_type: type; strides: list(int); padding: string; dilations: list(int)
  = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedConv2DWithBiasSumAndRelu(input: Tinput, filter: Tfilter, bias: float, min_input: float,
  max_input: float, min_filter: float, max_filter: float, summand: float) -> (output: out_type,
  min_output: float, max_output: float) {Tinput: type; Tfilter: type; out_type: type; strides:
  list(int); padding: string; dilations: list(int) = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedConv2DWithBiasSumAndReluAndRequantize(input: Tinput, filter: Tfilter, bias: Tbias,
  min_input: float, max_input: float, min_filter: float, max_filter: float, min_freezed_output:
  float, max_freezed_output: float, summand: Tsummand, min_summand: float, max_summand: float) ->
  (output: out_type, min_output: float, max_output: float) {Tinput: type; Tfilter: type; Tbias:
  type; Tsummand: type; out_type: type; strides: list(int); padding: string; dilations: list(int)
  = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedDepthwiseConv2D(input: Tinput, filter: Tfilter, min_input: float, max_input: float,
  min_filter: float, max_filter: float) -> (output: out_type, min_output: float, max_output:
  float) {Tinput: type; Tfilter: type; out_type: type; strides: list(int); padding: string;
  dilations: list(int) = [1, 1, 1, 1]}
QuantizedDepthwiseConv2DWithBias(input: Tinput, filter: Tfilter, bias: float, min_input: float,
  max_input: float, min_filter: float, max_filter: float) -> (output: out_type, min_output: float,
  max_output: float) {Tinput: type; Tfilter: type; out_type: type; strides: list(int); padding:
  string; dilations: list(int) = [1, 1, 1, 1]}
QuantizedDepthwiseConv2DWithBiasAndRelu(input: Tinput, filter: Tfilter, bias: float, min_input:
  float, max_input: float, min_filter: float, max_filter: float) -> (output: out_type, min_output:
  float, max_output: float) {Tinput: type; Tfilter: type; out_type: type; strides: list(int);
  padding: string; dilations: list(int) = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize(input: Tinput, filter: Tfilter, bias: Tbias,
  min_input: float, max_input: float, min_filter: float, max_filter: float, min_freezed_output:
  float, max_freezed_output: float) -> (output: out_type, min_output: float, max_output: float)
  {Tinput: type; Tfilter: type; Tbias: type; out_type: type; strides: list(int); padding: string;
  dilations: list(int) = [1, 1, 1, 1]; padding_list: list(int) = []}
QuantizedInstanceNorm(x: T, x_min: float, x_max: float) -> (y: T, y_min: float, y_max: float) {T:
  type; output_range_given: bool = false; given_y_min: float = 0.0; given_y_max: float = 0.0;
  variance_epsilon: float = 9.999999747378752e-06; min_separation: float = 0.0010000000474974513}
QuantizedMatMul(a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float) -> (out:
  Toutput, min_out: float, max_out: float) {T1: type; T2: type; Toutput: type; transpose_a: bool =
  false; transpose_b: bool = false; Tactivation: type}
QuantizedMatMulWithBias(a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float,
  max_b: float) -> (out: Toutput, min_out: float, max_out: float) {T1: type; T2: type; Tbias:
  type; Toutput: type; transpose_a: bool = false; transpose_b: bool = false; input_quant_mode:
  string = 'MIN_FIRST'}
QuantizedMatMulWithBiasAndDequantize(a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b:
  float, max_b: float, min_freezed_output: float, max_freezed_output: float) -> (out: Toutput)
  {T1: type; T2: type; Tbias: type; Toutput: type; transpose_a: bool = false; transpose_b: bool =
  false; input_quant_mode: string = 'MIN_FIRST'}
QuantizedMatMulWithBiasAndRelu(a: T1, b: T2, bias: float, min_a: float, max_a: float, min_b:
  float, max_b: float) -> (out: Toutput, min_out: float, max_out: float) {T1: type; T2: type;
  Toutput: type; transpose_a: bool = false; transpose_b: bool = false; input_quant_mode: string =
  'MIN_FIRST'}
QuantizedMatMulWithBiasAndReluAndRequantize(a: T1, b: T2, bias: Tbias, min_a: float, max_a: float,
  min_b: float, max_b: float, min_freezed_output: float, max_freezed_output: float) -> (out:
  Toutput, min_out: float, max_out: float) {T1: type; T2: type; Tbias: type; Toutput: type;
  transpose_a: bool = false; transpose_b: bool = false; input_quant_mode: string = 'MIN_FIRST'}
QuantizedMatMulWithBiasAndRequantize(a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b:
  float, max_b: float, min_freezed_output: float, max_freezed_output: float) -> (out: Toutput,
  min_out: float, max_out: float) {T1: type; T2: type; Tbias: type; Toutput: type; transpose_a:
  bool = false; transpose_b: bool = false; input_quant_mode: string = 'MIN_FIRST'}
QuantizedMaxPool(input: T, min_input: float, max_input: float) -> (output: T, min_output: float,
  max_output: float) {T: type; ksize: list(int); strides: list(int); padding: string}
QuantizedMul(x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float) -> (z: Toutput,
  min_z: float, max_z: float) {T1: type; T2: type; Toutput: type}
QuantizedRelu(features: Tinput, min_features: float, max_features: float) -> (activations:
  out_type, min_activations: float, max_activations: float) {Tinput: type; out_type: type}
QuantizedRelu6(features: Tinput, min_features: float, max_features: float) -> (activations:
  out_type, min_activations: float, max_activations: float) {Tinput: type; out_type: type}
QuantizedReshape(tensor: T, shape: Tshape, input_min: float, input_max: float) -> (output: T,
  output_min: float, output_max: float) {T: type; Tshape: type = int32}
QuantizedResizeBilinear(images: T, size: int32, min: float, max: float) -> (resized_images: T,
  out_min: float, out_max: float) {T: type; align_corners: bool = false; half_pixel_centers: bool
  = false}
RequantizationRange(input: Tinput, input_min: float, input_max: float) -> (output_min: float,
  output_max: float) {Tinput: type}
RequantizationRangePerChannel(input: T, input_min: float, input_max: float) -> (output_min: float,
  output_max: float) {T: type; clip_value_max: float}
Requantize(input: Tinput, input_min: float, input_max: float, requested_output_min: float,
  requested_output_max: float) -> (output: out_type, output_min: float, output_max: float)
  {Tinput: type; out_type: type}
RequantizePerChannel(input: T, input_min: float, input_max: float, requested_output_min: float,
  requested_output_max: float) -> (output: out_type, output_min: float, output_max: float) {T:
  type; out_type: type}
# summary writers in graphs are not supported: fetch the summaries and write them with
  tf.compat.v1.summary.FileWriter
CloseSummaryWriter(writer: resource) -> () {}
CreateSummaryDbWriter(writer: resource, db_uri: string, experiment_name: string, run_name: string,
  user_name: string) -> () {}
CreateSummaryFileWriter(writer: resource, logdir: string, max_queue: int32, flush_millis: int32,
  filename_suffix: string) -> () {}
FlushSummaryWriter(writer: resource) -> () {}
ImportEvent(writer: resource, event: string) -> () {}
SummaryWriter() -> (writer: resource) {shared_name: string = ''; container: string = ''}
WriteAudioSummary(writer: resource, step: int64, tag: string, tensor: float, sample_rate: float)
  -> () {max_outputs: int = 3}
WriteGraphSummary(writer: resource, step: int64, tensor: string) -> () {}
WriteHistogramSummary(writer: resource, step: int64, tag: string, values: T) -> () {T: type =
  float}
WriteImageSummary(writer: resource, step: int64, tag: string, tensor: T, bad_color: uint8) -> ()
  {max_images: int = 3; T: type = float}
WriteRawProtoSummary(writer: resource, step: int64, tensor: string) -> () {}
WriteScalarSummary(writer: resource, step: int64, tag: string, value: T) -> () {T: type}
WriteSummary(writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string) ->
  () {T: type}
# generators with state in a variable are not supported: use tf.random.stateless_uniform or similar
NonDeterministicInts(shape: shape_dtype) -> (output: dtype) {dtype: type = int64; shape_dtype:
  type = int64}
RngReadAndSkip(resource: resource, alg: int32, delta: uint64) -> (value: int64) {}
RngSkip(resource: resource, algorithm: int64, delta: int64) -> () {}
StatefulRandomBinomial(resource: resource, algorithm: int64, shape: S, counts: T, probs: T) ->
  (output: dtype) {S: type; T: type = double; dtype: type = int64}
StatefulStandardNormal(resource: resource, shape: shape_dtype) -> (output: dtype) {dtype: type =
  float; shape_dtype: type = int64}
StatefulStandardNormalV2(resource: resource, algorithm: int64, shape: shape_dtype) -> (output:
  dtype) {dtype: type = float; shape_dtype: type = int64}
StatefulTruncatedNormal(resource: resource, algorithm: int64, shape: shape_dtype) -> (output:
  dtype) {dtype: type = float; shape_dtype: type = int64}
StatefulUniform(resource: resource, algorithm: int64, shape: shape_dtype) -> (output: dtype)
  {dtype: type = float; shape_dtype: type = int64}
StatefulUniformFullInt(resource: resource, algorithm: int64, shape: shape_dtype) -> (output:
  dtype) {dtype: type = uint64; shape_dtype: type = int64}
StatefulUniformInt(resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype,
  maxval: dtype) -> (output: dtype) {dtype: type = int64; shape_dtype: type = int64}
# there is no kernel for it
MatrixLogarithm(input: T) -> (output: T) {T: type}
MatrixSquareRoot(input: T) -> (output: T) {T: type}
MatrixExponential(input: T) -> (output: T) {T: type}
DecodeCompressed(bytes: string) -> (output: string) {compression_type: string = ''}
UnicodeScript(input: int32) -> (output: int32) {}
AudioSummary(tag: string, tensor: float) -> (summary: string) {sample_rate: float;
  max_outputs: int = 3}
CSRSparseMatrixComponents(csr_sparse_matrix: variant, index: int32) -> (row_ptrs: int32, col_inds:
  int32, values: type) {type: type}
CSRSparseMatrixToDense(sparse_input: variant) -> (dense_output: type) {type: type}
CSRSparseMatrixToSparseTensor(sparse_matrix: variant) -> (indices: int64, values: type,
  dense_shape: int64) {type: type}
ConsumeMutexLock(mutex_lock: variant) -> () {}
DecodeProtoV2(bytes: string) -> (sizes: int32, values: output_types) {message_type: string;
  field_names: list(string); output_types: list(type) >= 0; descriptor_source: string =
  'local://'; message_format: string = 'binary'; sanitize: bool = false}
DecodeWebP(contents: string) -> (image: dtype) {channels: int = 0; dtype: type = uint8}
DenseToCSRSparseMatrix(dense_input: T, indices: int64) -> (sparse_output: variant) {T: type}
DeserializeIterator(resource_handle: resource, serialized: variant) -> () {}
DestroyTemporaryVariable(ref: Ref(T)) -> (value: T) {T: type; var_name: string}
Eig(input: T) -> (e: Tout, v: Tout) {compute_v: bool = true; T: type; Tout: type}
EmptyTensorMap() -> (handle: variant) {}
EncodeProto(sizes: int32, values: Tinput_types) -> (bytes: string) {field_names: list(string);
  message_type: string; descriptor_source: string = 'local://'; Tinput_types: list(type) >= 1}
For(start: int32, limit: int32, delta: int32, input: T) -> (output: T) {T: list(type) >= 0; body:
  func}
FusedPadConv2D(input: T, paddings: int32, filter: T) -> (output: T) {T: type; mode: string;
  strides: list(int); padding: string}
FusedResizeAndPadConv2D(input: T, size: int32, paddings: int32, filter: T) -> (output: T) {T:
  type; resize_align_corners: bool = false; mode: string; strides: list(int); padding: string}
IsotonicRegression(input: T) -> (output: output_dtype, segments: int32) {T: type; output_dtype:
  type = float}
KMC2ChainInitialization(distances: float, seed: int64) -> (index: int64) {}
KmeansPlusPlusInitialization(points: float, num_to_sample: int64, seed: int64,
  num_retries_per_sample: int64) -> (samples: float) {}
LMDBReader() -> (reader_handle: Ref(string)) {container: string = ''; shared_name: string = ''}
MutexLock(mutex: resource) -> (mutex_lock: variant) {}
MutexV2() -> (resource: resource) {container: string = ''; shared_name: string = ''}
NearestNeighbors(points: float, centers: float, k: int64) -> (nearest_center_indices: int64,
  nearest_center_distances: float) {}
NegTrain(w_in: Ref(float), w_out: Ref(float), examples: int32, labels: int32, lr: float) -> ()
  {vocab_count: list(int); num_negative_samples: int}
RecordInput() -> (records: string) {file_pattern: string; file_random_seed: int = 301;
  file_shuffle_shift_ratio: float = 0.0; file_buffer_size: int = 10000; file_parallelism: int =
  16; batch_size: int = 32; compression_type: string = ''}
RefSelect(index: int32, inputs: N * Ref(T)) -> (output: Ref(T)) {T: type; N: int}
SdcaFprint(input: string) -> (output: int64) {}
SdcaOptimizer(sparse_example_indices: num_sparse_features * int64, sparse_feature_indices:
  num_sparse_features * int64, sparse_feature_values: num_sparse_features_with_values * float,
  dense_features: num_dense_features * float, example_weights: float, example_labels: float,
  sparse_indices: num_sparse_features * int64, sparse_weights: num_sparse_features * float,
  dense_weights: num_dense_features * float, example_state_data: float) ->
  (out_example_state_data: float, out_delta_sparse_weights: num_sparse_features * float,
  out_delta_dense_weights: num_dense_features * float) {loss_type: string; adaptative: bool =
  false; num_sparse_features: int; num_sparse_features_with_values: int; num_dense_features: int;
  l1: float; l2: float; num_loss_partitions: int; num_inner_iterations: int}
SdcaOptimizerV2(sparse_example_indices: num_sparse_features * int64, sparse_feature_indices:
  num_sparse_features * int64, sparse_feature_values: num_sparse_features_with_values * float,
  dense_features: num_dense_features * float, example_weights: float, example_labels: float,
  sparse_indices: num_sparse_features * int64, sparse_weights: num_sparse_features * float,
  dense_weights: num_dense_features * float, example_state_data: float) ->
  (out_example_state_data: float, out_delta_sparse_weights: num_sparse_features * float,
  out_delta_dense_weights: num_dense_features * float) {loss_type: string; adaptive: bool = false;
  num_sparse_features: int; num_sparse_features_with_values: int; num_dense_features: int; l1:
  float; l2: float; num_loss_partitions: int; num_inner_iterations: int}
SdcaShrinkL1(weights: num_features * Ref(float)) -> () {num_features: int; l1: float; l2: float}
SerializeIterator(resource_handle: resource) -> (serialized: variant) {external_state_policy: int
  = 0}
Skipgram() -> (vocab_word: string, vocab_freq: int32, words_per_epoch: int64, current_epoch:
  int32, total_words_processed: int64, examples: int32, labels: int32) {filename: string;
  batch_size: int; window_size: int = 5; min_count: int = 5; subsample: float =
  0.0010000000474974513}
SobolSample(dim: int32, num_results: int32, skip: int32) -> (samples: dtype) {dtype: type = float}
SparseMatrixMatMul(a: variant, b: T) -> (output: T) {T: type; transpose_a: bool = false;
  transpose_b: bool = false; adjoint_a: bool = false; adjoint_b: bool = false; transpose_output:
  bool = false; conjugate_output: bool = false}
SparseMatrixNNZ(sparse_matrix: variant) -> (nnz: int32) {}
SparseMatrixOrderingAMD(input: variant) -> (output: int32) {}
SparseMatrixSparseCholesky(input: variant, permutation: int32) -> (output: variant) {type: type}
SparseMatrixSparseMatMul(a: variant, b: variant) -> (c: variant) {type: type; transpose_a: bool =
  false; transpose_b: bool = false; adjoint_a: bool = false; adjoint_b: bool = false}
SparseMatrixTranspose(input: variant) -> (output: variant) {conjugate: bool = false; type: type}
SparseTensorToCSRSparseMatrix(indices: int64, values: T, dense_shape: int64) -> (sparse_matrix:
  variant) {T: type}
StatelessRandomBinomial(shape: S, seed: Tseed, counts: T, probs: T) -> (output: dtype) {S: type;
  Tseed: type = int64; T: type = double; dtype: type = int64}
TemporaryVariable() -> (ref: Ref(dtype)) {shape: shape; dtype: type; var_name: string = ''}
TensorListPushBackBatch(input_handles: variant, tensor: element_dtype) -> (output_handles:
  variant) {element_dtype: type}
TensorMapErase(input_handle: variant, key: key_dtype) -> (output_handle: variant) {key_dtype:
  type; value_dtype: type}
TensorMapHasKey(input_handle: variant, key: key_dtype) -> (has_key: bool) {key_dtype: type}
TensorMapInsert(input_handle: variant, key: key_dtype, value: value_dtype) -> (output_handle:
  variant) {key_dtype: type; value_dtype: type}
TensorMapLookup(input_handle: variant, key: key_dtype) -> (value: value_dtype) {key_dtype: type;
  value_dtype: type}
TensorMapSize(input_handle: variant) -> (size: int32) {}
TensorMapStackKeys(input_handle: variant) -> (keys: key_dtype) {key_dtype: type}
TensorSummary(tensor: T) -> (summary: string) {T: type; description: string = ''; labels:
  list(string) = []; display_name: string = ''}
)";

}  // namespace leat

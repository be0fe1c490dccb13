// Graphs of cuDNN's backend API (NVIDIA cuDNN, "Graph API"): descriptors that end with their scope,
// a graph of few lines per operation, and the plan that runs it. For files that begin with
// `// leat: cuda-library`.
#pragma once

#include <cudnn.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/cudnn_handle.cuh"

namespace leat::cuda {

// What cuDNN calls the attributes of a C++ type. A descriptor is a void*, too: see `set`.
template <class T>
inline constexpr cudnnBackendAttributeType_t attribute_type = T::is_no_type_of_an_attribute;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnPointwiseMode_t> =
    CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnReduceTensorOp_t> =
    CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendHeurMode_t> =
    CUDNN_TYPE_HEUR_MODE;

// Owns a descriptor. All calls throw if cuDNN refuses them.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    check_cudnn(cudnnBackendCreateDescriptor(type, &raw_), "cudnnBackendCreateDescriptor");
  }
  ~CudnnDescriptor() {
    if (raw_ != nullptr) (void)cudnnBackendDestroyDescriptor(raw_);
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }

  cudnnBackendDescriptor_t raw() const { return raw_; }

  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, &value, 1);
  }
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const T* values, size_t count) {
    return set(name, attribute_type<T>, values, count);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value.raw_, 1);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name,
                       const std::vector<CudnnDescriptor>& values) {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const CudnnDescriptor& each : values) raw.push_back(each.raw_);
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.data(), raw.size());
  }
  // After this, it no longer changes.
  CudnnDescriptor&& finish() && {
    check_cudnn(cudnnBackendFinalize(raw_), "cudnnBackendFinalize");
    return std::move(*this);
  }

 private:
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const void* values, size_t count) {
    check_cudnn(cudnnBackendSetAttribute(raw_, name, type, static_cast<int64_t>(count), values),
                "cudnnBackendSetAttribute");
    return *this;
  }

  cudnnBackendDescriptor_t raw_ = nullptr;
};

// How a graph that was built is computed. Thread-safe but for `run`, which the handle's mutex
// guards.
class CudnnPlan {
 public:
  CudnnPlan(CudnnDescriptor plan, size_t workspace_bytes)
      : plan_(std::move(plan)), workspace_bytes_(workspace_bytes) {}

  size_t workspace_bytes() const { return workspace_bytes_; }

  // `pointers`: of the tensors `ids`, on the device; of numbers, on the host. Only enqueues, on the
  // handle's stream.
  void run(cudnnHandle_t handle, const std::vector<int64_t>& ids,
           const std::vector<void*>& pointers, void* workspace) const {
    CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids.data(), ids.size())
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers.data(), pointers.size())
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
    const CudnnDescriptor finished = std::move(pack).finish();
    check_cudnn(cudnnBackendExecute(handle, plan_.raw(), finished.raw()), "cudnnBackendExecute");
  }

 private:
  CudnnDescriptor plan_;
  size_t workspace_bytes_;
};

// A graph of operations on tensors of four axes, computed in float32. Operations return the tensor
// that they make, which exists only within the graph; those that are called `…_into` write to one
// that exists.
class CudnnGraph {
 public:
  using Extents = std::array<int64_t, 4>;
  using Tensor = int64_t;  // its unique id

  // Where a tensor's elements are.
  enum class Kind : uint8_t { within, on_device, number };

  static Extents dense(const Extents& extents) {
    return {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
  }

  Tensor add(cudnnDataType_t type, const Extents& extents, const Extents& strides, Kind kind) {
    const auto id = static_cast<Tensor>(tensors_.size());
    CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents.data(), extents.size())
        .set(CUDNN_ATTR_TENSOR_STRIDES, strides.data(), strides.size())
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16})
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, kind == Kind::within)
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, kind == Kind::number);
    tensors_.push_back({std::move(tensor).finish(), extents, strides});
    return id;
  }
  // On the device, dense.
  Tensor on_device(cudnnDataType_t type, const Extents& extents) {
    return add(type, extents, dense(extents), Kind::on_device);
  }
  // A float32 that each run gives.
  Tensor number() { return add(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, Kind::number); }

  // The same elements with the last two axes exchanged.
  Tensor transposed(Tensor x, cudnnDataType_t type) {
    Extents extents = at(x).extents, strides = at(x).strides;
    std::swap(extents[2], extents[3]);
    std::swap(strides[2], strides[3]);
    const Tensor y = add(type, extents, strides, Kind::within);
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, of(x))
        .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, of(y));
    operations_.push_back(std::move(operation).finish());
    return y;
  }

  Tensor product(Tensor a, Tensor b) {
    Extents extents = at(a).extents;
    extents[3] = at(b).extents[3];
    return product_into(a, b, within(CUDNN_DATA_FLOAT, extents));
  }
  Tensor product_into(Tensor a, Tensor b, Tensor c) {
    CudnnDescriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    const CudnnDescriptor finished = std::move(product).finish();
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(a))
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(b))
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(c))
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, finished);
    operations_.push_back(std::move(operation).finish());
    return c;
  }

  // Element by element, of up to three operands; the others repeat along axes of extent 1.
  Tensor map(cudnnPointwiseMode_t mode, std::initializer_list<Tensor> operands,
             cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return map_into(mode, operands, within(type, at(*operands.begin()).extents));
  }
  Tensor map_into(cudnnPointwiseMode_t mode, std::initializer_list<Tensor> operands, Tensor y) {
    const bool compares = mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_CMP_LE;
    return map_into(mode, operands, y, compares ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT, {});
  }
  // The place of each element along an axis, as int32.
  Tensor indices(Tensor like, int64_t axis) {
    const Tensor y = within(CUDNN_DATA_INT32, at(like).extents);
    return map_into(CUDNN_POINTWISE_GEN_INDEX, {like}, y, CUDNN_DATA_FLOAT, axis);
  }

  // Over the last axis.
  Tensor reduce(cudnnReduceTensorOp_t mode, Tensor x) {
    Extents extents = at(x).extents;
    extents[3] = 1;
    const Tensor y = within(CUDNN_DATA_FLOAT, extents);
    CudnnDescriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_REDUCTION_OPERATOR, mode);
    const CudnnDescriptor finished = std::move(reduction).finish();
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(x))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(y))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, finished);
    operations_.push_back(std::move(operation).finish());
    return y;
  }

  // The first way that cuDNN's heuristics propose and that this GPU can go; none: it has no way.
  // Throws if cuDNN does not know such graphs.
  std::optional<CudnnPlan> plan(cudnnHandle_t handle, size_t most_workspace) const {
    const CudnnDescriptor graph = finished(handle);
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
          .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
      if (cudnnBackendFinalize(heuristics.raw()) != CUDNN_STATUS_SUCCESS) continue;
      for (const CudnnDescriptor& way : ways(heuristics)) {
        if (auto plan = plan_of(handle, way, most_workspace)) return plan;
      }
    }
    return {};
  }

 private:
  struct Described {
    CudnnDescriptor descriptor;
    Extents extents, strides;
  };

  const Described& at(Tensor tensor) const { return tensors_[static_cast<size_t>(tensor)]; }
  const CudnnDescriptor& of(Tensor tensor) const { return at(tensor).descriptor; }
  Tensor within(cudnnDataType_t type, const Extents& extents) {
    return add(type, extents, dense(extents), Kind::within);
  }

  Tensor map_into(cudnnPointwiseMode_t mode, std::initializer_list<Tensor> operands, Tensor y,
                  cudnnDataType_t precision, std::optional<int64_t> axis) {
    CudnnDescriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
    if (axis) function.set(CUDNN_ATTR_POINTWISE_AXIS, *axis);
    const CudnnDescriptor finished = std::move(function).finish();
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, finished);
    constexpr cudnnBackendAttributeName_t names[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                     CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                     CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    const cudnnBackendAttributeName_t* name = names;
    for (const Tensor operand : operands) operation.set(*name++, of(operand));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(y))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1.0F)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1.0F);
    operations_.push_back(std::move(operation).finish());
    return y;
  }

  CudnnDescriptor finished(cudnnHandle_t handle) const {
    CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle)
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
    return std::move(graph).finish();
  }

  static std::vector<CudnnDescriptor> ways(const CudnnDescriptor& heuristics) {
    int64_t count = 0;
    check_cudnn(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                "cudnnBackendGetAttribute");
    std::vector<CudnnDescriptor> out;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < count; ++i) {
      out.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      raw.push_back(out.back().raw());
    }
    check_cudnn(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
                "cudnnBackendGetAttribute");
    out.erase(out.begin() + count, out.end());
    return out;
  }

  static std::optional<CudnnPlan> plan_of(cudnnHandle_t handle, const CudnnDescriptor& way,
                                          size_t most_workspace) {
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle)
        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, way);
    if (cudnnBackendFinalize(plan.raw()) != CUDNN_STATUS_SUCCESS) return {};
    int64_t bytes = 0, count = 0;
    check_cudnn(cudnnBackendGetAttribute(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                         CUDNN_TYPE_INT64, 1, &count, &bytes),
                "cudnnBackendGetAttribute");
    if (bytes < 0 || static_cast<size_t>(bytes) > most_workspace) return {};
    return CudnnPlan(std::move(plan), static_cast<size_t>(bytes));
  }

  std::vector<Described> tensors_;  // by id
  std::vector<CudnnDescriptor> operations_;
};

}  // namespace leat::cuda

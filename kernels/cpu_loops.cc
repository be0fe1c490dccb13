#include "kernels/cpu_loops.h"

namespace leat::cpu {
namespace {

const void* advance(const void* from, int64_t bytes) {
  return static_cast<const char*>(from) + bytes;
}

// Walks over the rows [begin, end) of the output, which are `plan.inner()` elements each.
class RowCursor {
 public:
  RowCursor(const ElementwiseLoop& loop, const Arguments& arguments, int64_t begin)
      : loop_(loop), arguments_(arguments) {
    for (int axis = loop.plan.rank - 2; axis >= 0; --axis) {
      index_[axis] = begin % loop.plan.extents[axis];
      begin /= loop.plan.extents[axis];
      for (int i = 0; i < loop.num_inputs; ++i)
        offsets_[i] += index_[axis] * loop.plan.strides[i][axis];
    }
  }

  void pointers(const void** in) const {
    for (int i = 0; i < loop_.num_inputs; ++i) {
      in[i] = advance(arguments_.inputs[i], offsets_[i] * static_cast<int64_t>(loop_.in_sizes[i]));
    }
  }

  void next() {
    const BroadcastPlan& plan = loop_.plan;
    for (int axis = plan.rank - 2; axis >= 0; --axis) {
      for (int i = 0; i < loop_.num_inputs; ++i) offsets_[i] += plan.strides[i][axis];
      if (++index_[axis] < plan.extents[axis]) return;
      index_[axis] = 0;
      for (int i = 0; i < loop_.num_inputs; ++i)
        offsets_[i] -= plan.extents[axis] * plan.strides[i][axis];
    }
  }

 private:
  const ElementwiseLoop& loop_;
  const Arguments& arguments_;
  int64_t index_[Shape::max_rank] = {};
  int64_t offsets_[BroadcastPlan::max_inputs] = {};  // in elements
};

}  // namespace

void ElementwiseLoop::operator()(const Arguments& arguments) const {
  char* out = arguments.output<char>();
  const void* f = functor.get();
  if (plan.rank == 1) {
    return arguments.stream->parallel_for(plan.elements, grain, [&](int64_t begin, int64_t end) {
      const void* in[BroadcastPlan::max_inputs];
      for (int i = 0; i < num_inputs; ++i) {
        in[i] = advance(arguments.inputs[i],
                        begin * plan.strides[i][0] * static_cast<int64_t>(in_sizes[i]));
      }
      row(f, end - begin, out + begin * static_cast<int64_t>(out_size), in);
    });
  }
  const int64_t length = plan.inner();
  const int64_t rows = plan.elements / length;
  const auto range = [&](int64_t begin, int64_t end) {
    RowCursor cursor(*this, arguments, begin);
    const void* in[BroadcastPlan::max_inputs];
    for (int64_t at = begin; at < end; ++at, cursor.next()) {
      cursor.pointers(in);
      row(f, length, out + at * length * static_cast<int64_t>(out_size), in);
    }
  };
  if (plan.elements <= grain) return range(0, rows);
  arguments.stream->parallel_for(rows, std::max<int64_t>(1, grain / length), range);
}

}  // namespace leat::cpu

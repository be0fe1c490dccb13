// Tape: a segment compiled for concrete input shapes, a flat list of {function, bound arguments}
// over one arena. The hot path of a step is all in TapeInstance::run; program.h shows its place in
// a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/kernel.h"
#include "core/state/variable.h"
#include "runtime/plan/program_plan.h"
#include "runtime/tapes/memory_plan.h"

namespace leat {

class NodeStates;
class TapeRecordings;

// Where an instruction finds or leaves a value.
struct Address {
  enum class Kind : uint8_t {
    none,      // no elements
    arena,     // the instance's arena
    constant,  // `index` of the tape's constants
    input,     // `index` of the segment's inputs
    variable,  // `index` of the segment's variables
    result,    // `index` of the instance's result buffers: a value that leaves the segment
    owned,     // `index` of the instance's own tensors: strings, and host values beside a GPU
  };
  Kind kind = Kind::none;
  int index = 0;
  size_t offset = 0;  // bytes into that
  size_t bytes = 0;   // that a kernel reads or writes there
};

// A compiled segment. Immutable; shared by its instances.
struct Tape {
  // The shapes (and elements, where they matter) that the tape is for.
  struct Key {
    std::vector<DType> dtypes;  // by input
    std::vector<Shape> inputs;
    std::vector<Tensor> values;    // by input; invalid where the elements do not matter
    std::vector<Shape> variables;  // by variable of the segment
    bool matches(std::span<const Tensor* const> now, const ProgramPlan& program,
                 const SegmentPlan& segment) const;
  };

  struct Instruction {
    KernelFunction function;
    const Node* node;
    int inputs = 0, outputs = 0;  // how many: their addresses come next in `addresses`
    Address workspace;
    int64_t output_bytes = 0;
    bool is_update = false;  // it changes a variable
  };
  // A value that leaves the segment.
  struct Result {
    Address address;
    Shape shape;
  };
  struct VariableUse {
    bool is_written = false;
    bool is_assigned = false;  // wholly written before anything reads it: need not be initialised
    Shape shape;
    const Node* reader = nullptr;    // the first that needs a value; null if none does
    const Node* assigner = nullptr;  // if is_assigned
  };

  Key key;
  std::vector<Instruction> instructions;
  std::vector<Address> addresses;                  // of each instruction's inputs, then its outputs
  std::vector<std::shared_ptr<const void>> bound;  // arguments of the functions, kept alive
  std::vector<const void*> arguments;              // by instruction
  std::vector<Tensor> constants;  // in the device's memory, or the host's where a kernel wants that
  struct Memory {
    DType dtype;
    Shape shape;
    bool on_host;
  };
  std::vector<Memory> results_memory;  // result buffers
  std::vector<Memory> owned;
  std::vector<Result> results;  // in the order of SegmentPlan::results
  // A result that may leave before the tape has ended.
  struct EarlyResult {
    size_t instruction;  // after which it is complete
    int result;
  };
  std::vector<EarlyResult> early_results;  // by instruction
  // By result buffer: the input that it may overwrite if the caller gives that up; -1: none.
  std::vector<int> heirs;
  std::vector<VariableUse> variables;  // in the order of SegmentPlan::variables
  size_t arena_bytes = 0;
  size_t max_live_bytes = 0;  // a lower bound for any planner

  // What it and an instance of it take, about, without their constants, arena and results.
  size_t bytes() const;
};

// What the tape of one set of shapes leaves for those of others.
struct TapeHints {
  MemoryHints memory;
  // Nodes of the segment in the order of execution; which of all ran.
  std::vector<int> sequence;
  std::vector<bool> is_live;
  // What must run after each node, whatever the shapes.
  struct Successors {
    std::vector<int> nodes;  // of all nodes, one after the other
    std::vector<int> first;  // by node: where its own begin; empty: not found yet
  };
  Successors successors;
};

// Compiles a segment. Inputs give shapes, and elements where SegmentPlan::Input::is_by_value.
// Variables must be locked: where declared shapes are partial, their present shapes count. Throws
// with the node's name. One at a time, so that `hints` may be those of all calls for a segment.
std::shared_ptr<const Tape> compile_tape(const ProgramPlan& program, const SegmentPlan& segment,
                                         std::span<const Tensor* const> inputs,
                                         NodeStates& node_states, TapeHints& hints);

// Gets results before their tape has ended.
using ResultTaker = std::function<void(int result, const Tensor& value)>;

// Start and end of an instruction of a traced run, in nanoseconds since the epoch.
struct InstructionTimes {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// A tape with everything bound to an arena: runs one step at a time. Runs reuse the memory, so a
// run allocates only while something still holds a result of an earlier run.
class TapeInstance {
 public:
  TapeInstance(std::shared_ptr<const Tape> tape, const ProgramPlan& program,
               const SegmentPlan& segment);
  ~TapeInstance();

  const Tape& tape() const { return *tape_; }
  const std::shared_ptr<const Tape>& shared_tape() const { return tape_; }
  // Returns whether it has run since the last call.
  bool take_was_used() { return std::exchange(was_used_, false); }
  // The size of its arena, if it has one, and of its result buffers.
  size_t bytes() const;

  // It runs with an arena of at least Tape::arena_bytes. Between runs, other instances may use it.
  bool has_arena() const { return arena_ != nullptr; }
  void use_arena(std::shared_ptr<Buffer> arena);
  std::shared_ptr<Buffer> take_arena() { return std::move(arena_); }

  // Runs the tape. The caller locks the segment's variables. Writes results to `results` (skips
  // null entries). Rethrows an exception of a kernel with node, op and device. Variables to be
  // assigned then keep their old value, unless the new value was computed in their own memory
  // (Variable::memory): overwritten elements are lost. `taker`, if given, also gets
  // Tape::early_results, each as soon as it is complete; what it throws ends the run. `given`, if
  // not empty, has a flag for each input: true if the caller does not need it after the run. Such
  // an input may be the result of an earlier run. If nobody else holds it, the new result is
  // written to its memory.
  void run(std::span<const Tensor* const> inputs, std::span<Tensor* const> results,
           std::vector<InstructionTimes>* times, const ResultTaker* taker,
           std::span<const char> given = {});

  // ---- Runs of the same memory, for callers that bind what changes (pinned_loop.h) ----
  // Whether nothing but inputs and results needs binding: no variables, nothing handed out early.
  bool can_run_bound() const {
    return device_.type() == DeviceType::cpu && tape_->variables.empty() &&
           tape_->early_results.empty();
  }
  void bind_input(int input, const Tensor& value) { bind(inputs_[input], value); }
  void bind_result(int buffer, const Tensor& memory) { bind(results_[buffer], memory); }
  // Memory for a result, for the caller alone.
  Tensor take_result(int buffer);
  void forget_result(int buffer) { result_buffers_[buffer] = Tensor(); }
  // For the next run(), once nobody else holds it.
  void keep_result(int buffer, Tensor memory) { result_buffers_[buffer] = std::move(memory); }
  void run_bound() {
    was_used_ = true;
    taker_ = nullptr;
    run_instructions<false>(nullptr);
  }

 private:
  struct Bound {
    KernelFunction function;
    const void* bound;
    Arguments arguments;
  };
  // Memory that may move between runs, and the places that use it.
  struct Outside {
    struct Use {
      int position;  // in pointers_
      size_t offset;
    };
    void* bound = nullptr;
    size_t bytes = 0;  // that its users access
    std::vector<Use> uses;
    void add(int position, const Address& address) {
      uses.push_back({position, address.offset});
      bytes = std::max(bytes, address.offset + address.bytes);
    }
  };

  void wrap_instructions();
  void hand_out(const Tape::EarlyResult& early) const;
  static Tensor as_result(const Tensor& memory, const Tape::Result& result);
  template <bool traced>
  void run_instructions(std::vector<InstructionTimes>* times);
  // With a device that repeats what it has recorded.
  void run_recordings();
  std::vector<const void*> device_addresses() const;
  void bind_variables();
  void bind_variable(size_t v);
  static void check_shape_stays(const Variable& variable, const Tape::VariableUse& use);
  void check_lies_here(const Variable& variable) const;
  void bind_results(std::span<const Tensor* const> inputs, std::span<const char> given);
  bool inherits(size_t result, std::span<const Tensor* const> inputs, std::span<const char> given);
  // Every pointer that a kernel gets is bound here, in use_arena() or in the constructor. All
  // compare the bytes behind it with those that the kernels were compiled to access.
  void bind(Outside& outside, const Tensor& tensor) {
    bind(outside, tensor.raw(), bytes_behind(tensor));
  }
  void bind(Outside& outside, void* data, size_t bytes) {
    char* const memory = static_cast<char*>(data);
    if (bytes < outside.bytes) [[unlikely]]
      fail_beyond(outside.bytes, bytes);
    if (outside.bound == memory) return;
    outside.bound = memory;
    has_moved_ = true;
    for (const auto& [position, offset] : outside.uses) pointers_[position] = memory + offset;
  }
  static size_t bytes_behind(const Tensor& tensor) {
    const Buffer* const buffer = tensor.buffer().get();
    if (buffer == nullptr) return 0;
    return buffer->bytes() -
           (static_cast<char*>(tensor.raw()) - static_cast<char*>(buffer->data()));
  }
  [[noreturn]] static void fail_beyond(size_t wanted, size_t available);
  void undo_assignments();
  void forget_replaced();

  std::shared_ptr<const Tape> tape_;
  const ProgramPlan& program_;
  const SegmentPlan& segment_;
  Device& device_;
  std::shared_ptr<Buffer> arena_;
  std::vector<Tensor> owned_;
  std::vector<Tensor> result_buffers_;
  std::vector<Tensor> spares_;    // the buffers of the run before, used in turn with those
  std::vector<Tensor> replaced_;  // values of variables whose memory this run replaced
  bool has_replaced_ = false;
  bool was_used_ = false;
  bool has_moved_ = true;  // something was bound to other memory since the last run
  std::unique_ptr<TapeRecordings> recordings_;  // null: the device has none
  std::vector<void*> pointers_;
  std::vector<Bound> instructions_;
  // Kernels called through a wrapper: updates, where the tape asks whether its step has ended, and
  // those after which results leave.
  struct Wrapped {
    KernelFunction function;
    const void* bound;
    const TapeInstance* self = nullptr;
    std::span<const Tape::EarlyResult> early = {};
  };
  std::unique_ptr<Wrapped[]> wrapped_;
  const ResultTaker* taker_ = nullptr;  // of the present run
  std::vector<Outside> inputs_, variables_, results_;
  Outside in_arena_;
  struct Workspace {
    size_t instruction, offset;
  };
  std::vector<Workspace> workspaces_;
};

}  // namespace leat

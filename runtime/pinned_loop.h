// The iterations of a loop whose condition and body are one tape each, and whose variables keep
// their shapes: between two iterations nothing is looked up, and no memory is bound but that of
// variables whose new value cannot overwrite the old one.
#pragma once

#include <memory>
#include <vector>

#include "runtime/loop.h"

namespace leat {

class PinnedLoop {
 public:
  // `values` are those of the loop's inputs, after an iteration; they must outlive this. Null if
  // the loop, or what it has at present, is not of that kind.
  static std::unique_ptr<PinnedLoop> make(const LoopProgram& loop, std::vector<Tensor>& values);
  // From then on, `values` are those after the last iteration.
  ~PinnedLoop();
  PinnedLoop(const PinnedLoop&) = delete;

  // At most so many iterations, and none once the step is ending. Returns whether the condition has
  // ended the loop. Throws with the node's name.
  bool run(int most);

 private:
  // One of the two programs, on an instance of its tape that nobody else uses meanwhile.
  class Part {
   public:
    Part(const LoopProgram::Part& part, const std::vector<Tensor>& values);
    ~Part();
    Part(const Part&) = delete;

    TapeInstance* operator->() const { return instance_.get(); }
    const Tape& tape() const { return instance_->tape(); }
    // Which of the loop's inputs input i of the tape is.
    int source(size_t i) const { return part_.feeds[part_.program->straight().inputs[i]]; }
    size_t inputs() const { return part_.program->straight().inputs.size(); }
    bool bind_inputs(const std::vector<Tensor>& values, int variables) const;

   private:
    const LoopProgram::Part& part_;
    Segment& segment_;
    std::unique_ptr<TapeInstance> instance_;
  };
  // A variable's value, in memory of its own or in two places in turn.
  struct Place {
    Tensor* value;
    int buffer;  // of the body's results
    Tensor here, next = {};
    std::vector<int> in_condition = {}, in_body = {};  // inputs that read it, if there is a next
  };

  PinnedLoop(const LoopProgram& loop, std::vector<Tensor>& values)
      : loop_(loop), condition_(loop.condition(), values), body_(loop.body(), values) {}
  bool pin(std::vector<Tensor>& values);
  bool pin_condition();
  bool pin_variable(int variable, Tensor& value);
  void alternate(Place& place);

  const LoopProgram& loop_;
  Part condition_, body_;
  Tensor is_going_on_;
  std::vector<Place> places_;
  std::vector<Place*> alternating_;
};

}  // namespace leat

// The ops of while loops: those that clients write, which no device ever runs, and `_Loop`, which
// structure_loops() makes of them. See graph/loops/loops.h.
#include "graph/shape_inference.h"

namespace leat {
namespace {

OpDef in_a_loop(const char* name, const char* doc, const char* input, const char* output,
                std::vector<std::string> attrs) {
  return {.name = name,
          .doc = doc,
          .inputs = {input},
          .outputs = {output},
          .attrs = std::move(attrs),
          .shape = shapes::same_as(0)};
}

std::vector<std::string> frame() {
  return {"T: type", "frame_name: string", "is_constant: bool = false",
          "parallel_iterations: int = 10"};
}

const Op enter_op{in_a_loop("Enter",
                            "output = data, in the while loop frame_name: once, or in every "
                            "iteration if is_constant.",
                            "data: T", "output: T", frame())};
const Op ref_enter_op{
    in_a_loop("RefEnter", "Enter of a variable.", "data: Ref(T)", "output: Ref(T)", frame())};
const Op exit_op{in_a_loop("Exit", "output = data, outside the while loop, when the loop ends.",
                           "data: T", "output: T", {"T: type"})};
const Op ref_exit_op{
    in_a_loop("RefExit", "Exit of a variable.", "data: Ref(T)", "output: Ref(T)", {"T: type"})};
const Op next_iteration_op{in_a_loop("NextIteration", "output = data, in the next iteration.",
                                     "data: T", "output: T", {"T: type"})};
const Op ref_next_iteration_op{in_a_loop("RefNextIteration", "NextIteration of a variable.",
                                         "data: Ref(T)", "output: Ref(T)", {"T: type"})};
const Op loop_cond_op{in_a_loop("LoopCond", "output = input: whether there is another iteration",
                                "input: bool", "output: bool", {})};

const Op loop_op{{
    .name = "_Loop",
    .doc = "results = the variables after `body` was computed while `condition` held, and `last` "
           "once behind it. The parts are GraphDefs: their feeds are called \"variable:0\", "
           "\"captured:0\". They have variables of their own for the references. A loop that is "
           "spread over devices has one on each, which signals the end of each iteration on its "
           "`done_edge`.",
    .inputs = {"variables: T", "captured: Tcaptured", "references: Ref(Treferences)"},
    .outputs = {"results: T"},
    .attrs = {"T: list(type)", "Tcaptured: list(type)", "Treferences: list(type)",
              "frame_name: string", "condition: string", "predicate: string", "body: string",
              "next: list(string)", "last: string = ''", "done_edge: int = -1"},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat

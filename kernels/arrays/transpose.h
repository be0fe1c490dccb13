// What Transpose and ConjugateTranspose share.
#pragma once

#include <string>
#include <vector>

#include "graph/op_def.h"
#include "kernels/moves/moves.h"

namespace leat {

struct Transposition {
  StridedCopy copy;
  bool keeps_order = true;  // only axes of extent 1 move
};

// Of a node with `perm` as input 1.
Transposition transposition_of(const KernelRequest& request);

template <class T>
BoundKernel prepare_transpose(TypeTag<T>, const KernelRequest& request) {
  Transposition plan = transposition_of(request);
  if (plan.keeps_order) return BoundKernel::view();
  return BoundKernel::of([copy = std::move(plan.copy)](const Arguments& a) {
    copy_strided(copy, a, a.input<T>(0), a.output<T>());
  });
}

OpDef transposition(std::string name, std::string doc, std::vector<Kernel> kernels);

}  // namespace leat

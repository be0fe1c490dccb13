// Seven usual networks with a batch of their own, as peers/tf_models.py and peers/torch_models.py
// have them: the same shapes and the same first values.
#pragma once

#include <leat/leat.h>

#include <string>
#include <vector>

namespace leat::bench {

// mlp: 784-256-128-10. cnn: two convolutions of 5 x 5 with pools, then 3136-512-10, on 28 x 28
// pixels. resnet: ResNet-20 on 32 x 32 x 3 (He et al., CVPR 2016, section 4.2, with projections).
// transformer: two layers, 64 positions, 128 features, 4 heads, 512 hidden units (Vaswani et al.,
// NeurIPS 2017, normalised before each part). lstm: 50 steps, 128 features, 256 units. word2vec:
// skip-gram, 100,000 words, 128 features, 64 negatives for the whole batch (Mikolov et al., NeurIPS
// 2013). wide: logistic regression on 40 of a million columns per example.
const std::vector<std::string>& networks();

// The mean loss of `batch` examples, which are variables that are not trained, on the device of
// that name; "": where the variables are. INVALID_ARGUMENT for a name that networks() lacks.
Output loss_of(const std::string& network, Graph& graph, int64_t batch, const std::string& device);

}  // namespace leat::bench

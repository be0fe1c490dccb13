// What the snippets of headers and READMEs speak of (snippets.py). Nothing here is defined: snippets
// are compiled, not linked.
#pragma once

#include <iostream>
#include <leat/leat.h>

using namespace leat;

extern Graph g, graph;
extern Output x, y, w, b, i, n, p, v, loss, images, ids, words, line, step, gradient;
extern Output local_step, batch_size, lengths;
extern Tensor examples, labels;
extern std::string directory;
extern int64_t epochs;
extern Node &init, &train;
extern ClusterSpec cluster;
extern TaskName task;
extern Feeds feeds;
extern Session session;
extern Sgd optimizer;
extern Replicas replicas;
extern Training training;
extern std::vector<Output> own_values;
extern std::vector<std::string> names;
extern std::vector<Output> losses;
extern std::vector<nn::Dense> layers;
Output model(Graph&);
Output loss_of(const std::vector<nn::Dense>&);

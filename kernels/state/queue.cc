#include "kernels/state/queue.h"

#include <algorithm>
#include <random>
#include <utility>

namespace leat {

TensorQueue::Options TensorQueue::Options::of(const NodeView& node) {
  Options out{.kind = std::string(node.op),
              .dtypes = node.attr<std::vector<DType>>("component_types"),
              .shapes = node.attr<std::vector<Shape>>("shapes"),
              .capacity = node.attr<int64_t>("capacity")};
  if (out.kind.ends_with("V2")) out.kind.resize(out.kind.size() - 2);
  out.is_sorted = out.kind == "PriorityQueue";
  if (out.is_sorted) {
    out.dtypes.insert(out.dtypes.begin(), DType::i64);
    out.shapes.insert(out.shapes.begin(), Shape{});
  }
  check(out.shapes.empty() || out.shapes.size() == out.dtypes.size(), "the queue '", node.name,
        "' has ", out.dtypes.size(), " component_types and ", out.shapes.size(), " shapes");
  out.is_padded = out.kind == "PaddingFIFOQueue";
  for (const Shape& shape : out.shapes) {
    check(!out.is_padded || shape.has_rank(), "the queue '", node.name,
          "' pads its elements, so the rank of each component must be known");
    check(out.is_padded || !shape.has_rank() || shape.is_complete(), "the queue '", node.name,
          "' does not pad its elements, so their shapes must be fully defined, got ", shape);
  }
  check(!out.is_padded || !out.shapes.empty(), "the queue '", node.name,
        "' pads its elements, so it needs the shapes of its components");
  if (!node.has("min_after_dequeue")) return out;
  out.is_shuffled = true;
  out.min_after_dequeue = node.attr<int64_t>("min_after_dequeue");
  check(out.min_after_dequeue >= 0 && (out.capacity < 0 || out.min_after_dequeue < out.capacity),
        "min_after_dequeue ", out.min_after_dequeue, " must be below the capacity ", out.capacity);
  out.seed = static_cast<uint64_t>(node.attr<int64_t>("seed"));
  out.seed2 = static_cast<uint64_t>(node.attr<int64_t>("seed2"));
  if (out.seed == 0 && out.seed2 == 0) out.seed = std::random_device()();
  return out;
}

TensorQueue::TensorQueue(std::string name, Options options)
    : Resource(std::move(name)),
      options_(std::move(options)),
      random_(options_.seed, options_.seed2) {}

void TensorQueue::check_fits(const NodeView& node) const {
  const Options wanted = Options::of(node);
  check(wanted.kind == options_.kind && wanted.dtypes == options_.dtypes &&
            wanted.shapes == options_.shapes && wanted.capacity == options_.capacity &&
            wanted.min_after_dequeue == options_.min_after_dequeue,
        "Shared queue '", name(), "' is a ", options_.kind, " of capacity ", options_.capacity,
        "; node '", node.name, "' expects a ", wanted.kind, " of capacity ", wanted.capacity,
        ", or other components");
}

std::string TensorQueue::state() const {
  const auto count = [](size_t n, const char* what) {
    return n == 0 ? concat("no ", what, " waits")
                  : concat(n, ' ', what, n == 1 ? " waits" : "s wait");
  };
  const std::lock_guard lock(mutex_);
  std::string out = concat(options_.kind, " '", name(), "' has ", elements_.size());
  if (options_.capacity >= 0) out += concat(" of at most ", options_.capacity);
  out += " elements";
  if (options_.min_after_dequeue > 0 && !is_closed_)
    out += concat(", of which ", options_.min_after_dequeue, " must stay");
  if (is_closed_) out += ", is closed";
  out += concat("; ", count(enqueues_.size(), "enqueue"), ", ", count(dequeues_.size(), "dequeue"));
  if (!dequeues_.empty() && dequeues_.front().wanted > 1) {
    out += concat(", the first has got ", dequeues_.front().elements.size(), " of ",
                  dequeues_.front().wanted);
  }
  return out;
}

void TensorQueue::check_batches() const {
  const auto fits = [&](const Shape& shape) {
    return options_.is_padded ? shape.has_rank() : shape.is_complete();
  };
  check(
      !options_.shapes.empty() && std::all_of(options_.shapes.begin(), options_.shapes.end(), fits),
      options_.kind,
      "'s DequeueMany and DequeueUpTo require the components to have specified shapes.");
}

void TensorQueue::check_element(const std::vector<Tensor>& components, bool are_many) const {
  check(components.size() == options_.dtypes.size(),
        "Wrong number of components in tuple. Expected ", options_.dtypes.size(), ", got ",
        components.size());
  for (size_t i = 0; i < components.size(); ++i) {
    check(components[i].dtype() == options_.dtypes[i], "Type mismatch in tuple component ", i,
          ". Expected ", options_.dtypes[i], ", got ", components[i].dtype());
    if (are_many) {
      check(
          components[i].shape().rank() > 0 && components[i].shape()[0] == components[0].shape()[0],
          "All input tensors of an enqueue_many must have the same size in the 0th dimension; "
          "component ",
          i, " has shape ", components[i].shape());
    }
    const int priority_rank = are_many ? 1 : 0;
    check(!options_.is_sorted || i > 0 || components[0].shape().rank() == priority_rank,
          "Expected the priority element to be a scalar, but received shape: ",
          components[0].shape());
    if (options_.shapes.empty()) continue;
    const std::span<const int64_t> dims = components[i].shape().dims();
    const Shape one(are_many ? dims.subspan(1) : dims);
    check(options_.shapes[i].is_compatible(one), "Shape mismatch in tuple component ", i,
          ". Expected ", options_.shapes[i], ", got ", one);
  }
}

// ---- Lines ----

// The operation learns of the end of its step before anything can serve it: `done` may end the
// step, and the cancellation with it.
void TensorQueue::join(Line& line, Operation operation, Cancellation& cancellation) {
  {
    const std::lock_guard lock(mutex_);
    operation.id = next_id_++;
    joining_.emplace(operation.id, Status{});
  }
  const Cancellation::Token token =
      cancellation.add([queue = shared_from_this(), id = operation.id](const Status& why) {
        queue->leave(id, why);
      });
  operation.forget = [&cancellation, token] { cancellation.remove(token); };
  Status ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(joining_.extract(operation.id).mapped());
    if (ended.is_ok()) line.push_back(std::move(operation));
  }
  if (!ended.is_ok()) return operation.done(ended, {});
  serve();
}

void TensorQueue::enqueue(std::vector<Element> elements, Cancellation& cancellation, Done done) {
  join(enqueues_,
       {.elements = std::move(elements),
        .done = [done = std::move(done)](const Status& status,
                                         std::vector<Element>) { done(status); }},
       cancellation);
}

void TensorQueue::put(Element element) {
  {
    const std::lock_guard lock(mutex_);
    put_one(std::move(element));
  }
  serve();
}

void TensorQueue::dequeue(int64_t count, bool up_to, Cancellation& cancellation, Taken taken) {
  join(dequeues_, {.wanted = count, .up_to = up_to, .done = std::move(taken)}, cancellation);
}

void TensorQueue::close(bool cancel_pending, Cancellation& cancellation, Done done) {
  if (cancel_pending) {
    Calls calls;
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      while (!enqueues_.empty())
        finish(enqueues_, {Code::cancelled, "Enqueue operation was cancelled"}, calls);
    }
    for (const auto& call : calls) call();
    serve();  // dequeues may have to fail
    return done({});
  }
  join(enqueues_,
       {.closes = true,
        .done = [done = std::move(done)](const Status& status,
                                         std::vector<Element>) { done(status); }},
       cancellation);
}

int64_t TensorQueue::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(elements_.size());
}

bool TensorQueue::is_closed() const {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

// Called when the operation's step has ended.
void TensorQueue::leave(int64_t id, const Status& why) {
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = joining_.find(id); found != joining_.end()) {
      found->second = why;
      return;
    }
    for (Line* line : {&enqueues_, &dequeues_}) {
      for (auto operation = line->begin(); operation != line->end(); ++operation) {
        if (operation->id != id) continue;
        if (line == &dequeues_) give_back(*operation);
        calls.push_back([done = std::move(operation->done), why] { done(why, {}); });
        line->erase(operation);
        break;
      }
    }
  }
  for (const auto& call : calls) call();
  serve();  // those behind it in line
}

// ---- Serving; what follows up to serve() runs with the lock held ----

void TensorQueue::finish(Line& line, Status status, Calls& calls) {
  Operation& first = line.front();
  calls.push_back([done = std::move(first.done), forget = std::move(first.forget),
                   elements = std::move(first.elements), status = std::move(status)]() mutable {
    forget();
    done(status, std::move(elements));
  });
  line.pop_front();
}

void TensorQueue::give_back(Operation& operation) {
  for (auto element = operation.elements.rbegin(); element != operation.elements.rend(); ++element)
    elements_.push_front(std::move(*element));
  operation.elements.clear();
}

namespace {

bool comes_later(const TensorQueue::Element& a, const TensorQueue::Element& b) {
  return a[0].item<int64_t>() > b[0].item<int64_t>();
}

}  // namespace

void TensorQueue::put_one(Element element) {
  elements_.push_back(std::move(element));
  if (options_.is_sorted) std::push_heap(elements_.begin(), elements_.end(), comes_later);
}

TensorQueue::Element TensorQueue::take_one() {
  if (options_.is_sorted) {
    std::pop_heap(elements_.begin(), elements_.end(), comes_later);
    Element out = std::move(elements_.back());
    elements_.pop_back();
    return out;
  }
  if (options_.is_shuffled) {
    if (used_ == drawn_.size()) drawn_ = random_.next(), used_ = 0;
    const size_t at = drawn_[used_++] % elements_.size();
    Element out = std::exchange(elements_[at], std::move(elements_.back()));
    elements_.pop_back();
    return out;
  }
  Element out = std::move(elements_.front());
  elements_.pop_front();
  return out;
}

bool TensorQueue::serve_enqueues(Calls& calls) {
  bool has_moved = false;
  while (!enqueues_.empty()) {
    Operation& first = enqueues_.front();
    if (is_closed_) {
      finish(enqueues_,
             {Code::cancelled, first.closes ? concat("Queue '", name(), "' is already closed.")
                                            : concat(options_.kind, " '", name(), "' is closed.")},
             calls);
    } else if (first.closes) {
      is_closed_ = true;
      finish(enqueues_, {}, calls);
    } else {
      size_t moved = 0;
      while (moved < first.elements.size() && has_space())
        put_one(std::move(first.elements[moved++]));
      first.elements.erase(first.elements.begin(),
                           first.elements.begin() + static_cast<std::ptrdiff_t>(moved));
      has_moved = has_moved || moved > 0;
      if (!first.elements.empty()) return has_moved;
      finish(enqueues_, {}, calls);
    }
    has_moved = true;
  }
  return has_moved;
}

bool TensorQueue::serve_dequeues(Calls& calls) {
  bool has_moved = false;
  while (!dequeues_.empty()) {
    Operation& first = dequeues_.front();
    const auto missing = [&] { return first.wanted - static_cast<int64_t>(first.elements.size()); };
    const auto available = [&] {
      const auto size = static_cast<int64_t>(elements_.size());
      return is_closed_ ? size : std::max<int64_t>(0, size - options_.min_after_dequeue);
    };
    if (is_closed_ && static_cast<int64_t>(elements_.size()) < missing()) {
      if (first.up_to && !(elements_.empty() && first.elements.empty())) {
        while (!elements_.empty()) first.elements.push_back(take_one());
        finish(dequeues_, {}, calls);
      } else {
        const int64_t wanted = first.wanted;
        give_back(first);
        finish(dequeues_,
               {Code::out_of_range, concat(options_.kind, " '", name(),
                                           "' is closed and has insufficient elements (requested ",
                                           wanted, ", current size ", elements_.size(), ")")},
               calls);
      }
      has_moved = true;
      continue;
    }
    // Sorted batches are taken at once: a smaller element may still come.
    if (options_.is_sorted && available() < missing()) return has_moved;
    for (; missing() > 0 && available() > 0; has_moved = true) first.elements.push_back(take_one());
    if (missing() > 0) return has_moved;
    finish(dequeues_, {}, calls);
    has_moved = true;
  }
  return has_moved;
}

void TensorQueue::serve() {
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    for (bool has_moved = true; has_moved;) {
      has_moved = serve_enqueues(calls);
      has_moved = serve_dequeues(calls) || has_moved;
    }
  }
  for (const auto& call : calls) call();
}

}  // namespace leat
